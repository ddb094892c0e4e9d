// Each chart: its words, its size, and how many marks it has beside axes and legends.
() => [...document.querySelectorAll(".panel")].map((panel) => {
  const svg = panel.querySelector("svg"), box = svg?.getBoundingClientRect();
  const marks = svg ? [...svg.querySelectorAll(".mark-symbol path, .mark-line path, .mark-area path, .mark-rect path, " +
    ".mark-rule line, .mark-text text, .mark-arc path, .mark-trail path")].filter((mark) => !mark.closest(".role-axis, .role-legend")) : [];
  return {
    about: panel.getAttribute("aria-label"), shown: panel.checkVisibility(), width: box?.width ?? 0, height: box?.height ?? 0,
    marks: marks.length, failed: panel.querySelector(".failed") !== null,
    broken: svg ? /NaN|Infinity|undefined/.test(svg.outerHTML.replace(/aria-label="[^"]*"/g, "")) : false,
    box: panel.clientWidth,
  };
})
