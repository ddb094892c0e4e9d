// The catalogue: search, facets, sorting by like numbers, selection. Its state stands in the address, so it can be shared.
"use strict";

const catalogue = (() => {
  const source = document.getElementById("catalogue-data");
  if (!source) return null;
  const DATA = JSON.parse(source.textContent);
  const RUNS = DATA.runs;
  const FACETS = [
    ["gpu", "GPU"], ["gpus", "GPUs in the machine"], ["model", "Model"], ["engine", "Engine"],
    ["quantisation", "Quantisation"], ["kind", "Kind"], ["status", "Status"], ["time", "Time"],
  ];
  // Rows put on the page at once; the next follow when one scrolls to their end.
  const FIRST = 25, CHUNK = 100;
  // Typing shall not write an address a letter: browsers refuse a hundred of them.
  const REMEMBER_MS = 200;
  const MOST_PICKED = 6, SHOWN_OPTIONS = 8;
  const NOT_STATED = "not stated";
  const state = {q: "", facets: {}, sort: "", descending: false, rated: "", picked: [], compare: false};
  const {element, words, plural} = parts;
  const $ = (id) => document.getElementById(id);

  const facetValue = (run, name) => (run[name] === undefined ? NOT_STATED : String(run[name]));
  const machine = (run) => (run.gpu === undefined ? run.hardware ?? "" : run.gpus === undefined ? run.gpu : `${run.gpus} x ${run.gpu}`);
  const choiceWords = ({of, promise, under}) => [of, promise, under].filter(Boolean).join(" · ");

  const bySlug = new Map(RUNS.map((run) => [run.slug, run]));
  const byChoice = new Map(DATA.choices.map((choice, at) => [choice.id, at]));
  const choiceRuns = DATA.choices.map(() => 0);
  for (const run of RUNS) {
    run.text = [
      run.name, run.kind, words(run.status), run.answer, run.time, run.began, run.gpu, run.hardware, run.engine, run.version,
      run.model, run.quantisation, run.digest, ...(run.terms ?? []).flat(), ...(run.paths ?? []),
    ].filter(Boolean).join("\n").toLowerCase();
    run.byChoice = new Map();
    for (const number of run.numbers ?? []) {
      if (run.byChoice.has(number.choice)) continue;
      run.byChoice.set(number.choice, number);
      choiceRuns[number.choice] += 1;
    }
  }

  /* Which runs are shown */

  let shown = [], rendered = 0, choice = -1;

  function matching() {
    const wanted = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const facets = Object.entries(state.facets).filter(([, values]) => values.size);
    const counts = new Map(FACETS.map(([name]) => [name, new Map()]));
    const count = (run, name) => {
      const values = counts.get(name), value = facetValue(run, name);
      values.set(value, (values.get(value) ?? 0) + 1);
    };
    const found = [];
    for (const run of RUNS) {
      if (!wanted.every((word) => run.text.includes(word))) continue;
      const failing = facets.filter(([name, values]) => !values.has(facetValue(run, name)));
      if (failing.length === 0) {
        found.push(run);
        for (const [name] of FACETS) count(run, name);
      } else if (failing.length === 1) {
        // What a facet would add is counted under all the others.
        count(run, failing[0][0]);
      }
    }
    return {found, counts};
  }

  const keys = {
    name: (run) => run.name, gpu: (run) => machine(run) || null, engine: (run) => run.engine ?? null,
    model: (run) => run.model ?? null, status: (run) => run.status, began: (run) => run.began ?? null,
    rated: (run) => run.byChoice.get(choice)?.value ?? null,
  };
  const collator = new Intl.Collator("en", {numeric: true});

  function sorted(runs) {
    const key = keys[state.sort];
    if (!key) return runs;
    const way = state.descending ? -1 : 1;
    const held = runs.map((run, order) => ({run, order, value: key(run)}));
    held.sort((a, b) => {
      // What is absent stands last, whichever way the rest is sorted.
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.order - b.order;
      const less = typeof a.value === "number" ? a.value - b.value : collator.compare(a.value, b.value);
      return way * less || a.order - b.order;
    });
    return held.map(({run}) => run);
  }

  /* Rows */

  const rows = new Map();
  let rowsOf = null;

  function cell(label, raw, ...children) {
    const made = element("td", {"data-label": label, "data-value": JSON.stringify(raw ?? null)}, ...children);
    if (!made.hasChildNodes()) made.append("\u2014");
    return made;
  }

  const soft = (text) => (text ? element("div", {className: "soft"}, text) : null);
  const badge = (text, tone) => element("span", {className: `badge tone-${tone}`}, words(text));

  // A number speaks for itself where nothing is wrong with it.
  function statusOf({status, tone, said}) {
    const fine = ["confirmed", "valid", "pass", "found", "imported"].includes(status);
    return !status || (fine && said) ? null : element("span", {className: `status tone-${tone ?? "none"}`}, ` ${words(status)}`);
  }

  function ratedCell(run) {
    const number = choice < 0 ? run.numbers?.find(({value}) => value !== undefined) ?? run.numbers?.[0] : run.byChoice.get(choice);
    if (!number) return cell("Rated", null);
    const about = DATA.choices[number.choice];
    const made = cell(
      "Rated", number.value,
      element("strong", {}, number.said || "\u2014"),
      statusOf(number),
      choice < 0 ? soft([DATA.measures[about.measure], about.of, about.promise].filter(Boolean).join(" · ")) : null,
      soft(number.note),
    );
    made.classList.add("num");
    made.title = `${DATA.measures[about.measure]}: ${choiceWords(about)}`;
    return made;
  }

  function rowOf(run) {
    if (rowsOf !== choice) { rows.clear(); rowsOf = choice; }
    const known = rows.get(run.slug);
    if (known) return known;
    const box = element("input", {type: "checkbox", checked: state.picked.includes(run.slug), "aria-label": `Select ${run.name}`});
    box.dataset.pick = run.slug;
    const title = run.page ? element("a", {href: run.page}, run.name) : run.name;
    const made = element(
      "tr", {"data-slug": run.slug},
      element(
        "th", {scope: "row", "data-value": JSON.stringify(run.name), title: run.answer},
        element("label", {className: "pick"}, box),
        element("div", {}, title, soft([run.kind, run.time === "simulated" ? "simulated" : null].filter(Boolean).join(" · "))),
      ),
      cell("GPU", machine(run) || null, run.gpu === undefined ? soft(run.hardware) : machine(run)),
      cell("Engine", run.engine, run.engine, soft(run.version)),
      cell("Model", run.model, run.model, soft(run.quantisation)),
      ratedCell(run),
      cell("Status", run.status, badge(run.status, run.tone)),
      cell("Date", run.began, run.began ? element("time", {dateTime: run.began, className: "nowrap"}, run.began.slice(0, 10)) : null),
    );
    rows.set(run.slug, made);
    return made;
  }

  function renderMore(upTo = rendered + CHUNK) {
    const next = shown.slice(rendered, upTo);
    $("runs").tBodies[0].append(...next.map(rowOf));
    rendered += next.length;
    const left = shown.length - rendered;
    $("more").hidden = left <= 0;
    $("more").textContent = `Show ${Math.min(left, CHUNK)} more of ${shown.length.toLocaleString("en")}`;
  }

  const renderAll = () => renderMore(shown.length);

  /* Facets */

  const options = new Map();

  function buildFacets() {
    const {counts} = matching();
    for (const [name, title] of FACETS) {
      const totals = [...counts.get(name)].sort((a, b) => b[1] - a[1] || collator.compare(a[0], b[0]));
      if (name === "gpus") totals.sort((a, b) => collator.compare(a[0], b[0]));
      if (totals.length < 2) continue;
      const held = new Map();
      const lines = totals.map(([value], at) => {
        const box = element("input", {type: "checkbox"});
        box.dataset.facet = name;
        box.value = value;
        const number = element("span", {className: "count"});
        const line = element("label", {className: value === NOT_STATED ? "soft" : ""}, box, element("span", {className: "what"}, words(value)), number);
        held.set(value, {box, number, line, at});
        return line;
      });
      const all = totals.length > SHOWN_OPTIONS ? element("button", {type: "button", className: "all", "aria-expanded": "false"}, `All ${totals.length}`) : null;
      if (all) all.dataset.all = name;
      const set = element("fieldset", {}, element("legend", {}, title), element("div", {className: "options"}, ...lines), all);
      options.set(name, {held, set, open: false});
      $("facets").append(set);
    }
  }

  function showFacets(counts) {
    for (const [name, {held, open}] of options) {
      for (const [value, {box, number, line, at}] of held) {
        const count = counts.get(name).get(value) ?? 0;
        box.checked = state.facets[name]?.has(value) ?? false;
        number.textContent = count.toLocaleString("en");
        line.classList.toggle("empty", count === 0);
        line.hidden = !open && at >= SHOWN_OPTIONS && !box.checked;
      }
    }
  }

  /* The number to sort by */

  function buildMeasures() {
    const present = Object.entries(DATA.measures).filter(([name]) => DATA.choices.some((one) => one.measure === name));
    $("measure").append(element("option", {value: ""}, "Newest first"), ...present.map(([name, title]) => element("option", {value: name}, title)));
  }

  function choicesOf(measure) {
    const found = DATA.choices.map((one, at) => ({one, at})).filter(({one}) => one.measure === measure);
    return found.sort((a, b) => choiceRuns[b.at] - choiceRuns[a.at] || collator.compare(choiceWords(a.one), choiceWords(b.one)));
  }

  function showChoice() {
    const one = DATA.choices[choice];
    $("measure").value = one?.measure ?? "";
    $("choice-label").hidden = !one;
    $("choice-note").hidden = !one;
    if (!one) return;
    if ($("choice").dataset.measure !== one.measure) {
      $("choice").dataset.measure = one.measure;
      $("choice").replaceChildren(...choicesOf(one.measure).map(({one: held, at}) => element(
        "option", {value: held.id}, `${choiceWords(held)}${held.time === "simulated" ? " · simulated" : ""} (${plural(choiceRuns[at], "run")})`,
      )));
    }
    $("choice").value = one.id;
    const have = choiceRuns[choice];
    $("choice-note").textContent = `Only like numbers are ranked together: ${plural(have, "run")} of ${RUNS.length.toLocaleString("en")} ${have === 1 ? "has" : "have"} ` +
      `this one (${[choiceWords(one), one.time ?? "time not stated"].filter(Boolean).join(" · ")}); the others stand last.`;
  }

  /* All together */

  function apply({quiet = false} = {}) {
    choice = byChoice.get(state.rated) ?? -1;
    const {found, counts} = matching();
    shown = sorted(found);
    rendered = 0;
    $("runs").tBodies[0].replaceChildren();
    renderMore(FIRST);
    showFacets(counts);
    showChoice();
    for (const head of $("runs").tHead.rows[0].cells) {
      const on = head.dataset.name === state.sort;
      head.setAttribute("aria-sort", on ? (state.descending ? "descending" : "ascending") : "none");
    }
    const filtered = state.q !== "" || Object.values(state.facets).some((values) => values.size);
    const said = filtered ? `${shown.length.toLocaleString("en")} of ${plural(RUNS.length, "run")}` : plural(RUNS.length, "run");
    if ($("count").textContent !== said) $("count").textContent = said;
    $("clear").hidden = !filtered;
    if ($("search").value !== state.q) $("search").value = state.q;
    showPicked();
    if (!quiet) remember();
  }

  function showPicked() {
    for (const [slug, row] of rows) row.querySelector("input[data-pick]").checked = state.picked.includes(slug);
    const picked = state.picked.map((slug) => bySlug.get(slug));
    $("picked").hidden = picked.length === 0 || state.compare;
    $("picked-list").replaceChildren(...picked.map((run) => {
      const button = element("button", {type: "button", "aria-label": `Take ${run.name} out`}, `${run.name} \u00d7`);
      button.dataset.unpick = run.slug;
      return element("li", {}, button);
    }));
    $("compare").disabled = picked.length < 2;
    $("picked-note").textContent = picked.length < 2 ? "Select another one to compare." : picked.length === MOST_PICKED ? "Six at most." : "";
    $("finder").hidden = state.compare;
    $("comparison").hidden = !state.compare;
  }

  function pick(slug, on) {
    const others = state.picked.filter((other) => other !== slug);
    state.picked = on && others.length < MOST_PICKED ? [...others, slug] : others;
    showPicked();
    remember();
  }

  /* The address */

  let remembering = 0;

  function remember() {
    clearTimeout(remembering);
    remembering = setTimeout(writeAddress, REMEMBER_MS);
  }

  function writeAddress() {
    const held = new URLSearchParams();
    if (state.q) held.set("q", state.q);
    for (const [name, values] of Object.entries(state.facets)) for (const value of values) held.append(name, value);
    if (state.rated) held.set("rated", state.rated);
    if (state.sort) held.set("sort", (state.descending ? "-" : "") + state.sort);
    for (const slug of state.picked) held.append("pick", slug);
    if (state.compare) held.set("view", "compare");
    const hash = held.toString();
    if (location.hash.slice(1) !== hash) history.replaceState(null, "", `#${hash}`);
  }

  function recall() {
    const held = new URLSearchParams(location.hash.slice(1));
    state.q = (held.get("q") ?? "").slice(0, 200);
    state.facets = {};
    for (const [name] of FACETS) {
      const known = held.getAll(name).filter((value) => options.get(name)?.held.has(value));
      if (known.length) state.facets[name] = new Set(known);
    }
    state.rated = byChoice.has(held.get("rated")) ? held.get("rated") : "";
    const sort = held.get("sort") ?? "";
    state.descending = sort.startsWith("-");
    state.sort = Object.hasOwn(keys, sort.replace("-", "")) ? sort.replace("-", "") : "";
    if (state.sort === "rated" && !state.rated) state.sort = "";
    state.picked = [...new Set(held.getAll("pick"))].filter((slug) => bySlug.has(slug)).slice(0, MOST_PICKED);
    state.compare = held.get("view") === "compare" && state.picked.length > 1;
    apply({quiet: true});
    if (state.compare) catalogueCompare.show();
  }

  function rank(id) {
    state.rated = id;
    state.sort = id ? "rated" : "";
    state.descending = Boolean(id);
    apply();
  }

  function sortBy(name) {
    if (name === "rated" && !state.rated) return $("measure").focus();
    const down = name === "rated" || name === "began";
    state.descending = state.sort === name ? !state.descending : down;
    state.sort = name;
    return apply();
  }

  function compareView(on) {
    state.compare = on && state.picked.length > 1;
    showPicked();
    remember();
    if (state.compare) catalogueCompare.show();
    else $("search").focus();
  }

  /* What people do */

  $("search").addEventListener("input", (event) => { state.q = event.target.value; apply(); });
  $("measure").addEventListener("change", (event) => rank(choicesOf(event.target.value)[0]?.one.id ?? ""));
  $("choice").addEventListener("change", (event) => rank(event.target.value));
  document.addEventListener("change", ({target}) => {
    if (target.dataset.pick) pick(target.dataset.pick, target.checked);
    if (target.dataset.facet) {
      const values = (state.facets[target.dataset.facet] ??= new Set());
      if (target.checked) values.add(target.value);
      else values.delete(target.value);
      apply();
    }
  });
  // Before the page's own listeners: what is copied is all that was found, not only what is on the page yet.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches("#finder .copy")) renderAll();
    else if (button.dataset.sort) sortBy(button.dataset.sort);
    else if (button.dataset.unpick) pick(button.dataset.unpick, false);
    else if (button.dataset.all) {
      const facet = options.get(button.dataset.all);
      facet.open = !facet.open;
      button.setAttribute("aria-expanded", String(facet.open));
      button.textContent = facet.open ? "Fewer" : `All ${facet.held.size}`;
      showFacets(matching().counts);
    } else if (button.id === "more") renderMore();
    else if (button.id === "clear") { state.q = ""; state.facets = {}; apply(); $("search").focus(); }
    else if (button.id === "unpick") { state.picked = []; showPicked(); remember(); }
    else if (button.id === "compare") compareView(true);
    else if (button.id === "back") compareView(false);
  }, true);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=search], select, textarea");
    if (event.key === "/" && !typing && !state.compare && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      $("search").focus();
    } else if (event.key === "Escape" && event.target.id === "search" && state.q) {
      event.preventDefault();
      state.q = "";
      apply();
    } else if (event.key === "Escape" && state.compare) compareView(false);
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.closest("#runs tbody")) {
      const row = event.target.closest("tr");
      const next = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
      const same = next?.querySelector(event.target.matches("a") ? "a" : "input[data-pick]");
      if (same) { event.preventDefault(); same.focus(); }
    }
  });
  addEventListener("hashchange", () => { clearTimeout(remembering); recall(); });
  addEventListener("beforeprint", renderAll);
  if ("IntersectionObserver" in window) {
    new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) renderMore(); }, {rootMargin: "600px"}).observe($("more"));
  }

  return {DATA, bySlug, state, statusOf, choiceWords, machine, recall, buildFacets, buildMeasures};
})();
