// Where the focus is, and whether that can be seen.
() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    control: element.dataset.control === undefined ? -1 : Number(element.dataset.control),
    outlined: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    name: `${element.tagName}.${element.className} ${element.textContent.trim().slice(0, 40)}`,
  };
}
