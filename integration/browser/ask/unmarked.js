// Cells of numbers that carry none: what is sorted and copied would be their words.
() => [...document.querySelectorAll("td.num")]
  .filter((cell) => /\d/.test(cell.textContent) && cell.dataset.value === undefined && !cell.querySelector("[data-value]"))
  .map((cell) => `${cell.closest("table").caption.textContent.slice(0, 40)}: ${cell.textContent.trim().slice(0, 40)}`)
