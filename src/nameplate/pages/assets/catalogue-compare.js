// Runs of the catalogue side by side: facts with their differences marked, like numbers in one row, charts on demand.
"use strict";

const catalogueCompare = (() => {
  if (!catalogue) return null;
  const {element, words, plural} = parts;
  const {DATA, bySlug, state, choiceWords, machine} = catalogue;
  const $ = (id) => document.getElementById(id);
  const ABSENT = "\u2014";
  const LETTERS = "ABCDEF";

  const FACTS = [
    ["kind", (run) => run.kind], ["status", (run) => words(run.status)], ["time", (run) => run.time], ["date", (run) => run.began?.replace("T", " ").replace("Z", " UTC")],
    ["GPU", machine], ["engine", (run) => run.engine], ["version", (run) => run.version], ["model", (run) => run.model],
    ["quantisation", (run) => run.quantisation], ["context, tokens", (run) => run.context?.toLocaleString("en")],
  ];
  // Two runs always differ in these: nothing is to be marked.
  const OWN = new Set(["date"]);

  function table(caption, runs, rows) {
    const heads = runs.map((run, at) => element(
      "th", {scope: "col"}, element("strong", {}, `${LETTERS[at]} `), run.page ? element("a", {href: run.page}, run.name) : run.name,
    ));
    const box = element(
      "div", {className: "table-box", role: "region", tabIndex: 0, "aria-label": caption},
      element(
        "table", {}, element("caption", {}, caption),
        element("thead", {}, element("tr", {}, element("th", {scope: "col"}, ""), ...heads)),
        element("tbody", {}, ...rows),
      ),
    );
    return element("div", {className: "table"}, box);
  }

  function factRow(name, values) {
    const differs = !OWN.has(name) && new Set(values.map((value) => value ?? null)).size > 1;
    return element(
      "tr", {className: differs ? "differs" : ""},
      element("th", {scope: "row"}, name, differs ? element("span", {className: "mark-differs"}, " differs") : null),
      ...values.map((value) => element("td", {}, value || ABSENT)),
    );
  }

  function termRows(runs) {
    const names = [...new Set(runs.flatMap((run) => (run.terms ?? []).map(([name]) => name)))];
    return names.map((name) => [name, runs.map((run) => (run.terms ?? []).find(([held]) => held === name)?.[1])]);
  }

  function numberRow(runs, at) {
    const about = DATA.choices[at];
    const cells = runs.map((run) => {
      const number = run.byChoice.get(at);
      if (!number) return element("td", {}, ABSENT);
      return element(
        "td", {"data-value": JSON.stringify(number.value ?? null)}, element("strong", {}, number.said || ABSENT),
        catalogue.statusOf(number),
        number.note ? element("div", {className: "soft"}, number.note) : null,
      );
    });
    return element(
      "tr", {}, element(
        "th", {scope: "row"}, DATA.measures[about.measure],
        element("div", {className: "soft"}, choiceWords(about), about.time === "simulated" ? " · simulated" : ""),
      ), ...cells,
    );
  }

  function numbersOf(runs) {
    const order = Object.keys(DATA.measures);
    const all = [...new Set(runs.flatMap((run) => [...run.byChoice.keys()]))];
    all.sort((a, b) => order.indexOf(DATA.choices[a].measure) - order.indexOf(DATA.choices[b].measure) || a - b);
    const shared = all.filter((at) => runs.filter((run) => run.byChoice.has(at)).length > 1);
    return {shared, single: all.filter((at) => !shared.includes(at))};
  }

  // As a shell takes it.
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

  function commands(runs) {
    const [first, ...others] = runs.map((run) => quoted(run.paths?.[0] ?? run.name));
    return others.map((other) => `nameplate compare ${first} ${other}`).join("\n");
  }

  function contractWords(runs) {
    const differing = termRows(runs).filter(([, values]) => new Set(values.map((value) => value ?? null)).size > 1).map(([name]) => name);
    if (!differing.length) return "Their contracts agree in every term shown here.";
    return `Their contracts differ (${differing.join(", ")}): numbers under differing contracts are not comparable. ` +
      "Only numbers of the same shape, promise and conditions stand in one row.";
  }

  function chartsOf(runs, shared) {
    const drawable = shared.filter((at) => runs.filter((run) => Number.isFinite(run.byChoice.get(at)?.value)).length > 1);
    if (!drawable.length) return null;
    const stage = element("div", {});
    const button = element("button", {type: "button"}, "Draw these numbers");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await library();
        stage.replaceChildren(element("div", {className: "panels"}, ...drawable.map((at) => bars(runs, at))));
        for (const panel of stage.querySelectorAll(".panel")) draw(panel);
        button.remove();
      } catch {
        button.disabled = false;
        stage.textContent = `The library for charts, ${$("bar-template").dataset.charts}, could not be loaded; the numbers stand in the table.`;
      }
    });
    return element("div", {}, button, stage);
  }

  let loading = null;

  function library() {
    if (typeof charts !== "undefined") return Promise.resolve();
    loading ??= new Promise((done, failed) => {
      const script = element("script", {src: $("bar-template").dataset.charts});
      script.onload = done;
      script.onerror = () => { loading = null; failed(new Error("not loaded")); };
      document.head.append(script);
    });
    return loading;
  }

  function bars(runs, at) {
    const about = DATA.choices[at];
    const values = runs.map((run, place) => ({run: `${LETTERS[place]} ${run.name}`, value: run.byChoice.get(at)?.value ?? null, said: run.byChoice.get(at)?.said ?? ""}))
      .filter(({value}) => value !== null);
    const spec = JSON.parse($("bar-template").textContent);
    const title = DATA.measures[about.measure];
    spec.data.values = values;
    spec.height *= values.length;
    // Room for the written value behind the longest bar.
    spec.encoding.x.scale.domain = [0, Math.max(...values.map(({value}) => value)) * 1.6 || 1];
    spec.description = `${title}, ${choiceWords(about)}: ${values.map(({run, said}) => `${run} ${said}`).join(", ")}`;
    const data = element("script", {type: "application/json"});
    data.textContent = JSON.stringify(spec);
    return element(
      "figure", {}, element("figcaption", {}, element("strong", {}, title), element("span", {}, choiceWords(about))),
      element("div", {className: "panel", role: "figure", "aria-label": spec.description}, data),
    );
  }

  function show() {
    const runs = state.picked.map((slug) => bySlug.get(slug));
    const {shared, single} = numbersOf(runs);
    $("comparison-title").textContent = `${runs.length} runs side by side`;
    const facts = [...FACTS.map(([name, read]) => [name, runs.map(read)]), ...termRows(runs), ["digest", runs.map((run) => run.digest?.slice(0, 12))], ["evidence", runs.map((run) => run.paths?.join("\n"))]];
    OWN.add("digest").add("evidence");
    const parts = [
      element("p", {}, contractWords(runs)),
      shared.length ? table("Like numbers", runs, shared.map((at) => numberRow(runs, at))) : element("p", {className: "soft"}, "They have no number of the same shape, promise and conditions."),
      chartsOf(runs, shared),
      table("Facts and terms", runs, facts.map(([name, values]) => factRow(name, values))),
      single.length ? element("details", {}, element("summary", {}, `${plural(single.length, "number")} that only one of them has`), table("Other numbers", runs, single.map((at) => numberRow(runs, at)))) : null,
      element("h3", {}, "With a verdict"),
      element("p", {}, "Whether a difference is more than chance, these say, from the evidence:"),
      element("pre", {}, element("code", {}, commands(runs))),
    ];
    $("comparison-body").replaceChildren(...parts.filter(Boolean));
    $("comparison-title").focus();
  }

  return {show};
})();

if (catalogue) {
  catalogue.buildFacets();
  catalogue.buildMeasures();
  document.getElementById("filters").open = matchMedia("(min-width: 60rem)").matches;
  catalogue.recall();
  document.documentElement.dataset.catalogue = "ready";
}
