// What sticks out of the page: elements beyond its right edge that no box of theirs clips or scrolls.
() => {
  const width = document.documentElement.clientWidth;
  const out = [];
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.right <= width + 1 || box.width === 0 || element.closest(".skip") || !element.checkVisibility()) continue;
    let held = false;
    for (let at = element.parentElement; at && !held; at = at.parentElement) {
      held = getComputedStyle(at).overflowX !== "visible" && at.getBoundingClientRect().right <= width + 1;
    }
    if (!held) out.push(`${element.tagName}.${element.className} to ${Math.round(box.right)}: ${element.textContent.trim().slice(0, 60)}`);
  }
  return {scroll: document.documentElement.scrollWidth, width, out};
}
