// Everything that Tab should reach, numbered in the order of the document; of a group of radio buttons the chosen one.
() => {
  const controls = [...document.querySelectorAll("a[href], button, summary, input, select, textarea, [tabindex='0']")]
    .filter((element) => element.checkVisibility() && !element.disabled
      && !(element.type === "radio" && !element.checked));
  controls.forEach((element, at) => { element.dataset.control = String(at); });
  return controls.length;
}
