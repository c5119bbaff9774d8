  // Agents -----------------------------------------------------------------------------------
  const svg = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  function swatch(label) {
    const place = data.labels.indexOf(label);
    if (place < 0) return null; // agents of a posterior analysis have no colour
    const colours = data.palettes[theme];
    const dash = data.dashes[Math.floor(place / colours.length) % data.dashes.length];
    const image = svg("svg", { width: 26, height: 10, class: "swatch", "aria-hidden": "true" });
    image.append(svg("line", {
      x1: 1, x2: 25, y1: 5, y2: 5, stroke: colours[place % colours.length], "stroke-width": 3,
      "stroke-dasharray": dash.join(" "),
    }));
    return image;
  }
  function applyShown() {
    const shown = shownSet();
    for (const item of drawn) follow(item);
    byId("agents-count").textContent = `${shownLabels().length} of ${problem().labels.length}`;
    for (const button of byId("agents").children) press(button, shown.has(button.label));
  }
  function showAgents() {
    const labels = state.found ? problem().labels.filter((label) => state.found.all.has(label)) : problem().labels;
    byId("agents").replaceChildren(...labels.map((label) => {
      const same = sameAs[state.problem].get(label);
      const name = make("span", {}, label);
      if (same) name.append(make("span", { class: "same", title: "The same regret in every round of every seed" },
        ` = ${same.filter((l) => l !== label).join(" = ")}`));
      const button = make("button", {
        type: "button",
        onclick: () => {
          const shown = shownSet();
          if (shown.has(label)) shown.delete(label); else shown.add(label);
          applyShown();
          bringOut(shown.has(label) ? label : "");
        },
      }, swatch(label), name);
      button.label = label;
      button.addEventListener("pointerenter", () => bringOut(label));
      button.addEventListener("pointerleave", () => bringOut(""));
      button.addEventListener("focus", () => bringOut(label));
      button.addEventListener("blur", () => bringOut(""));
      press(button, shownSet().has(label));
      return button;
    }));
    byId("agents-best").textContent =
      problem().labels.length > data.few ? `Best ${problem().initially.length}` : "Best 3";
    byId("agents-count").textContent = `${shownLabels().length} of ${problem().labels.length}`;
  }
  function setShown(labels) {
    const shown = shownSet();
    shown.clear();
    labels.forEach((label) => { if (!state.found || state.found.all.has(label)) shown.add(label); });
    applyShown();
  }
  byId("agents-best").addEventListener("click", () =>
    setShown(problem().labels.length > data.few ? problem().initially : problem().labels.slice(0, 3)));
  byId("agents-all").addEventListener("click", () => setShown(problem().labels));
  byId("agents-none").addEventListener("click", () => setShown([]));

  // Search -----------------------------------------------------------------------------------
  // Every word is looked for in the names of testbeds and of agents. Where it is in names of agents
  // only these are listed, drawn and in the tables; where in names of testbeds, only these listed.
  const wordsOf = () => byId("search").value.toLocaleLowerCase("en").split(/\s+/).filter(Boolean);
  const has = (name, word) => name.toLocaleLowerCase("en").includes(word);
  const matching = (names, words) => {
    const own = words.filter((word) => names.some((name) => has(name, word)));
    return names.filter((name) => own.every((word) => has(name, word)));
  };
  const MOST_FOUND = 24; // drawn at once; all that were found are listed
  function findAgents() {
    const words = wordsOf();
    const labels = problem().labels;
    const some = words.some((word) => labels.some((label) => has(label, word)));
    if (!some) { state.found = null; return; }
    const all = matching(labels, words);
    state.found = new Set(all.slice(0, MOST_FOUND));
    state.found.all = new Set(all);
  }
  function search() {
    const words = wordsOf();
    findAgents();
    const names = data.problems.map((p) => p.name);
    const kept = new Set(matching(names, words));
    [...byId("problems").children].forEach((button, i) => {
      button.hidden = !kept.has(names[i]) && i !== state.problem;
    });
    const everywhere = [...names, ...data.problems.flatMap((p) => p.labels)];
    const lost = words.filter((word) => !everywhere.some((name) => has(name, word)));
    const elsewhere = words.length && !lost.length && !state.found && !words.some((w) => names.some((n) => has(n, w)));
    byId("search-said").textContent = lost.length ? `Nothing is called “${lost[0]}”.`
      : elsewhere ? "Only on another testbed." : "";
    filterVerdicts();
    showAgents();
    applyShown();
    filterTables();
  }
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.target.value = ""; search(); }
    const first = [...byId("problems").children].find((button) => !button.hidden && wordsOf().some((w) => has(button.textContent, w)));
    if (event.key === "Enter" && first) first.click();
  });

