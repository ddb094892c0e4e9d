// Text with too little contrast (WCAG 2.1, 1.4.3: 4.5:1, and 3:1 from 24 px or bold 18.66 px on). Colours are drawn on a
// canvas and read back, for the browser may name them in any space.
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, under) => [0, 1, 2].map((at) => top[at] * top[3] + under[at] * (1 - top[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(rgba(getComputedStyle(at).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    const canvas = getComputedStyle(document.documentElement).colorScheme === "dark" ? [0, 0, 0, 1] : [255, 255, 255, 1];
    return layers.reduceRight((under, top) => over(top, under), canvas);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => (part /= 255) <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const faint = [];
  const seen = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  for (let node = seen.nextNode(); node; node = seen.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, noscript, .skip") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    if (Number(style.opacity) === 0) continue;
    count += 1;
    const svg = element.closest("svg");
    const back = ground(element);
    const ink = over(rgba(svg ? style.fill : style.color), back);
    const [high, low] = [light(ink), light(back)].sort((a, b) => b - a);
    const ratio = (high + .05) / (low + .05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${element.tagName} ${node.data.trim().slice(0, 50)}`);
  }
  return {count, faint};
}
