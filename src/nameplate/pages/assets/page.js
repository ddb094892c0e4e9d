// What a page does beside being read: draws its charts, sorts and copies its tables, changes its theme.
"use strict";

const CONFIG = {
  background: "transparent",
  font: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif",
  padding: 4,
  view: {stroke: null},
  axis: {
    labelColor: "var(--soft)", titleColor: "var(--ink)", gridColor: "var(--line)", domainColor: "var(--soft)",
    tickColor: "var(--soft)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600, titlePadding: 8, gridOpacity: .7,
    labelOverlap: true,
  },
  axisX: {grid: false},
  axisY: {titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleX: 0, titleY: -8, titleBaseline: "bottom", domain: false, ticks: false, tickCount: 5},
  legend: {
    labelColor: "var(--ink)", titleColor: "var(--ink)", labelFontSize: 12, titleFontSize: 12, orient: "bottom",
    symbolStrokeWidth: 2, labelLimit: 260, titleLimit: 420,
  },
  header: {labelColor: "var(--ink)", titleColor: "var(--ink)", labelFontSize: 12},
  title: {color: "var(--ink)", subtitleColor: "var(--soft)", anchor: "start", fontSize: 13, fontWeight: 600},
  mark: {color: "var(--s1)"},
  text: {color: "var(--ink)", fontSize: 12},
  rule: {color: "var(--ink)"},
  line: {strokeWidth: 2},
  point: {filled: true, size: 55, opacity: 1},
  range: {category: ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"]},
};

// Where there is no room beside each other, legends stand below each other.
const NARROW = {...CONFIG, legend: {...CONFIG.legend, columns: 3, layout: {bottom: {direction: "vertical"}}}};

// Data that several charts and tables of a page draw from: columns by name, and rows.
const held = new Map();
function shared(name) {
  if (!held.has(name)) {
    const {columns, rows, words} = JSON.parse(document.getElementById(name).textContent);
    for (const [column, known] of Object.entries(words)) {
      const at = columns.indexOf(column);
      for (const row of rows) row[at] = known[row[at]];
    }
    held.set(name, {columns, rows});
  }
  return held.get(name);
}

function named({columns, rows}) {
  return rows.map((row, at) => Object.fromEntries([["at", at], ...columns.map((name, column) => [name, row[column]])]));
}

// Every chart gets values of its own: the library writes into them.
function supply(spec) {
  if (spec === null || typeof spec !== "object") return;
  for (const [key, part] of Object.entries(spec)) {
    if (key !== "data") supply(part);
    else if (part && part.of !== undefined) spec.data = {values: named(shared(part.of))};
    else if (part && part.curves) spec.data = {values: part.curves.flatMap(({points, ...curve}) => points.map(([x, y]) => ({...curve, x, y})))};
  }
}

// What lies in closed details has a width in some browsers, and nobody looks at it.
function isSeen(element) {
  return element.closest("details:not([open])") === null && element.clientWidth > 0;
}

// A chart that resembles another holds what is different in it.
function specOf(source) {
  const spec = JSON.parse(source.textContent);
  if (spec.like === undefined) return spec;
  const whole = JSON.parse(document.getElementById(spec.like).textContent);
  for (const [path, value] of spec.set) {
    const last = path.pop();
    path.reduce((at, step) => at[step], whole)[last] = value;
  }
  return whole;
}

function draw(panel) {
  if (panel.dataset.drawn || !isSeen(panel)) return;
  panel.dataset.drawn = "yes";
  const source = panel.querySelector("script[type='application/json']");
  const stage = document.createElement("div");
  panel.append(stage);
  try {
    const spec = specOf(source);
    supply(spec);
    const {spec: compiled} = charts.compile(spec, {config: panel.clientWidth < 480 ? NARROW : CONFIG});
    const view = new charts.View(charts.parse(compiled, null, {ast: true}), {
      expr: charts.expressionInterpreter,
      renderer: "svg",
      logLevel: charts.Warn,
      tooltip: new charts.Handler({disableDefaultStyle: true}).call,
      loader: {load: () => Promise.reject(new Error("pages load nothing")), sanitize: () => Promise.reject(new Error("pages link nothing"))},
    });
    view.initialize(stage).hover().run();
    panel.view = view;
  } catch (error) {
    stage.className = "failed";
    stage.textContent = "This chart could not be drawn; its numbers are in the table below it.";
    console.error(error);
  }
}

function drawWithin(root) {
  for (const panel of root.querySelectorAll(".panel")) draw(panel);
  for (const body of root.querySelectorAll("tbody[data-of]")) fill(body);
}

// A table over shared data is written when it is seen; `data-field` of its heads says what stands in each column.
function fill(body) {
  if (body.rows.length || !isSeen(body.parentNode)) return;
  const {columns, rows} = shared(body.dataset.of);
  const heads = [...body.parentNode.tHead.rows[0].cells];
  for (const row of rows) {
    const line = body.insertRow();
    heads.forEach((head, at) => {
      const value = row[columns.indexOf(head.dataset.field)] ?? null;
      const cell = document.createElement(at ? "td" : "th");
      if (!at) cell.scope = "row";
      if (head.classList.contains("num")) cell.className = "num";
      cell.dataset.value = JSON.stringify(value);
      cell.textContent = value === null ? "\u2014" : typeof value === "number" ? value.toLocaleString("en", {maximumFractionDigits: 3}) : value;
      line.append(cell);
    });
  }
}

// Charts far down are drawn while nobody waits; those in closed details when they open.
function drawAll() {
  const waiting = [...document.querySelectorAll(".panel")];
  for (const body of document.querySelectorAll("tbody[data-of]")) fill(body);
  const step = () => {
    const until = performance.now() + 40;
    while (waiting.length && performance.now() < until) draw(waiting.shift());
    if (waiting.length) setTimeout(step, 0);
    else document.documentElement.dataset.ready = "yes";
  };
  step();
}

for (const details of document.querySelectorAll("details")) {
  details.addEventListener("toggle", () => { if (details.open) drawWithin(details); });
}

// Paper shows everything: closed parts are opened, drawn, and closed again behind it.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const details of opened) details.open = true;
  drawWithin(document);
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
  opened = [];
});

function raw(cell) {
  const held = cell.dataset.value ?? cell.querySelector("[data-value]")?.dataset.value;
  return held === undefined ? cell.textContent.trim() : JSON.parse(held);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", {numeric: true});
}

function sort(header) {
  const table = header.closest("table");
  const column = [...header.parentNode.children].indexOf(header);
  const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of header.parentNode.children) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", direction);
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, order) => ({row, order, value: raw(row.cells[column])}));
  // What is absent stands last, whichever way the rest is sorted.
  const absent = ({value}) => value === null || value === "" || value === "\u2014" || value === "-";
  rows.sort((a, b) => {
    if (absent(a) || absent(b)) return absent(a) - absent(b) || a.order - b.order;
    return (direction === "ascending" ? 1 : -1) * compare(a.value, b.value) || a.order - b.order;
  });
  body.append(...rows.map(({row}) => row));
  body.classList.add("sorted");
}

function csv(table) {
  const quoted = (value) => {
    let said = value === null ? "" : String(value);
    // A spreadsheet runs what begins like a formula.
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(said)) said = `'${said}`;
    return /[",\r\n]/.test(said) ? `"${said.replaceAll('"', '""')}"` : said;
  };
  const head = [...table.tHead.rows[0].cells].map((cell) => cell.dataset.name ?? cell.textContent.trim().replaceAll("\n", " "));
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map(raw));
  return [head, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

async function copy(button) {
  const text = csv(button.closest(".table").querySelector("table"));
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  button.nextElementSibling.textContent = done ? "Copied." : "The browser does not allow copying.";
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.parentNode.matches("th[aria-sort]")) sort(button.parentNode);
  else if (button.matches(".copy")) copy(button);
  else if (button.matches(".theme")) theme();
});

function theme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
}

addEventListener("hashchange", () => open(location.hash));
function open(hash) {
  let target = null;
  try {
    target = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
  } catch {
    // An address that was cut or typed wrong leads nowhere.
  }
  for (let at = target; at; at = at.parentElement) if (at.matches("details")) at.open = true;
  if (target) target.scrollIntoView();
}

drawAll();
open(location.hash);
