// Each sortable column, up and down: what does not stand in order afterwards.
() => {
  const wrong = [];
  const absent = (value) => value === null || value === "" || value === "\u2014" || value === "-";
  for (const header of document.querySelectorAll("th[aria-sort]")) {
    const table = header.closest("table"), at = [...header.parentNode.children].indexOf(header);
    const before = table.tBodies[0].rows.length;
    for (const wanted of ["ascending", "descending"]) {
      header.querySelector("button").click();
      const held = [...table.tBodies[0].rows].map((row) => {
        const cell = row.cells[at], text = cell.dataset.value ?? cell.querySelector("[data-value]")?.dataset.value;
        return text === undefined ? cell.textContent.trim() : JSON.parse(text);
      });
      const name = `${table.caption?.textContent.slice(0, 40)} / ${header.textContent}`;
      if (header.getAttribute("aria-sort") !== wanted) wrong.push(`${name}: not marked as ${wanted}`);
      if (held.length !== before) wrong.push(`${name}: rows were lost`);
      const first = held.findIndex(absent);
      const there = first < 0 ? held : held.slice(0, first);
      if (first >= 0 && !held.slice(first).every(absent)) wrong.push(`${name}: absent values are not last`);
      const sign = wanted === "ascending" ? 1 : -1;
      for (let row = 1; row < there.length; row += 1) {
        const [a, b] = [there[row - 1], there[row]];
        if (typeof a === "number" && typeof b === "number" && sign * (b - a) < 0) wrong.push(`${name}: ${a} before ${b}`);
      }
    }
  }
  return wrong;
}
