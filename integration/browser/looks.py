"""What a reader sees and hears of a page, asked of the browser: contrast, overflow, focus, charts, structure."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# Text with too little contrast (WCAG 2.1, 1.4.3: 4.5:1, and 3:1 from 24 px or bold 18.66 px on). Colours are drawn on
# a canvas and read back, for the browser may name them in any space.
_FAINT = """() => {
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
}"""

# What sticks out of the page: elements beyond its right edge that no box of theirs clips or scrolls.
_WIDE = """() => {
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
}"""

_CHARTS = """() => [...document.querySelectorAll(".panel")].map((panel) => {
  const svg = panel.querySelector("svg"), box = svg?.getBoundingClientRect();
  const marks = svg ? [...svg.querySelectorAll(".mark-symbol path, .mark-line path, .mark-area path, .mark-rect path, " +
    ".mark-rule line, .mark-text text, .mark-arc path, .mark-trail path")].filter((mark) => !mark.closest(".role-axis, .role-legend")) : [];
  return {
    about: panel.getAttribute("aria-label"), shown: panel.checkVisibility(), width: box?.width ?? 0, height: box?.height ?? 0,
    marks: marks.length, failed: panel.querySelector(".failed") !== null,
    broken: svg ? /NaN|Infinity|undefined/.test(svg.outerHTML.replace(/aria-label="[^"]*"/g, "")) : false,
    box: panel.clientWidth,
  };
})"""

_STRUCTURE = """() => ({
  title: document.title, lang: document.documentElement.lang,
  h1: [...document.querySelectorAll("h1")].map((head) => head.textContent.trim()),
  levels: [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((head) => Number(head.tagName[1])),
  landmarks: ["header", "main", "footer"].filter((name) => document.querySelectorAll(`body > ${name}`).length === 1),
  ids: [...document.querySelectorAll("[id]")].map((element) => element.id).filter((id, at, all) => all.indexOf(id) !== at),
  dead: [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href"))
    .filter((href) => !document.getElementById(decodeURIComponent(href.slice(1)))),
  outside: [...document.querySelectorAll("[src], link, a[href]")].map((element) => element.getAttribute("src") ?? element.getAttribute("href"))
    .filter((address) => address && !address.startsWith("#") && !address.startsWith("data:")),
  unnamed: [...document.querySelectorAll("table:not(:has(caption)), figure:not(:has(figcaption)), .panel:not([aria-label])")].length,
})"""

# Everything that Tab should reach, in the order of the document.
_CONTROLS = """() => {
  const controls = [...document.querySelectorAll("a[href], button, summary, input, select, textarea, [tabindex='0']")]
    .filter((element) => element.checkVisibility() && !element.disabled);
  controls.forEach((element, at) => { element.dataset.control = String(at); });
  return controls.length;
}"""
_FOCUS = """() => {
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
}"""


def faint_text(page: Page) -> list[str]:
    """Return texts without the contrast that reading takes; AssertionError where there is no text at all."""
    found = page.evaluate(_FAINT)
    assert found["count"] > 10
    return list(found["faint"])


def sticking_out(page: Page) -> list[str]:
    """Return what is wider than the page."""
    found = page.evaluate(_WIDE)
    too_wide = [f"the page scrolls to {found['scroll']} of {found['width']}"]
    return (too_wide if found["scroll"] > found["width"] else []) + list(found["out"])


def charts(page: Page) -> list[dict[str, Any]]:
    """Return each panel: its words, size and number of marks."""
    return list(page.evaluate(_CHARTS))


def structure(page: Page) -> dict[str, Any]:
    """Return title, headings, landmarks, repeated identifiers, dead links and addresses outside the page."""
    return dict(page.evaluate(_STRUCTURE))


def tab_through(page: Page) -> tuple[int, list[dict[str, Any]]]:
    """Press Tab from the top to the end; return how many controls there are, and each stop in order."""
    count = int(page.evaluate(_CONTROLS))
    stops: list[dict[str, Any]] = []
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        stop = page.evaluate(_FOCUS)
        if stop is None:
            break
        stops.append(stop)
        if stop["control"] == count - 1:
            break
    return count, stops
