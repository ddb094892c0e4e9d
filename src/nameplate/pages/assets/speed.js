// What became of a cell is told below its matrix, for the mouse, the keyboard and the finger alike.
"use strict";

for (const heat of document.querySelectorAll(".heat")) {
  const line = heat.querySelector(".why");
  const idle = "Point at a cell, or move to it by keyboard, for what became of it.";
  line.textContent = idle;
  for (const cell of heat.querySelectorAll("a[title]")) {
    cell.dataset.why = cell.title;
    cell.removeAttribute("title");
    cell.setAttribute("aria-description", cell.dataset.why);
  }
  const tell = (event) => {
    const cell = event.target.closest("a[data-why]");
    line.textContent = cell ? cell.dataset.why : idle;
  };
  heat.addEventListener("pointerover", tell);
  heat.addEventListener("focusin", tell);
}
