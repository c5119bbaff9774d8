  // Theme ------------------------------------------------------------------------------------
  let theme = null;
  function remembered() {
    try { return localStorage.getItem("feelgood-theme"); } catch { return null; }
  }
  function setTheme(name, keep) {
    theme = name;
    document.documentElement.dataset.theme = name;
    byId("theme").textContent = name === "dark" ? "Light theme" : "Dark theme";
    if (keep) try { localStorage.setItem("feelgood-theme", name); } catch { /* private window */ }
    redrawAll();
    showAgents();
    showTables();
  }

  // Charts -----------------------------------------------------------------------------------
  const tables = new Map();
  function unpacked(packed) {
    const columns = packed.columns.map((column) =>
      Array.isArray(column) ? column : column.index.map((i) => column.words[i]));
    return Array.from({ length: packed.length }, (_, i) => {
      const row = {};
      packed.fields.forEach((field, k) => { row[field] = columns[k][i]; });
      return row;
    });
  }
  function packedOf(name, index) {
    const shared = data.shared[index];
    return shared && Object.hasOwn(shared, name) ? shared[name] : data.datasets[name];
  }
  function rowsOf(name, index = state.problem) {
    const key = `${index} ${name}`;
    if (!tables.has(key)) tables.set(key, unpacked(packedOf(name, index)));
    return tables.get(key);
  }
  const parts = (spec) => [spec, ...(spec.layer || []).flatMap(parts), ...(spec.spec ? parts(spec.spec) : [])];
  const tablesOf = (spec) => [...new Set(parts(spec).map((part) => part.data && part.data.name)
    .filter((name) => name && packedOf(name, state.problem)))];
  // Every agent has the same colour, dash and shape in all charts.
  function looks(channel) {
    const labels = problem().labels;
    const places = labels.map((label) => data.labels.indexOf(label));
    const colours = data.palettes[theme];
    const of = (kinds) => places.map((place) => kinds[Math.floor(place / colours.length) % kinds.length]);
    const range = channel === "color" ? places.map((place) => colours[place % colours.length])
      : of(channel === "shape" ? data.shapes : data.dashes);
    return { domain: labels, range };
  }
  const hasSignal = (spec, name) => (spec.params || []).some((param) => param.name === name);
  // The signals and tables of a chart that follow what is shown.
  function following(item, spec) {
    const signals = {};
    const filled = {};
    if (!item.entry.switched) return { signals, filled };
    signals.shown = shownLabels();
    if (hasSignal(spec, "focus")) signals.focus = focus();
    const meta = spec.usermeta && spec.usermeta.values;
    if (!meta) return { signals, filled };
    const picks = picksOf(item.entry.section);
    const name = tablesOf(spec).find((table) => packedOf(table, state.problem).fields.includes(meta.value));
    const rows = meta.along || !data.shared[state.problem].seeds ? rowsOf(name) : withSeeds(rowsOf(name));
    const axis = axisOf(meta, rows, Boolean(picks.get("whole")));
    Object.assign(signals, { bands: Boolean(picks.get("bands")), bottom: axis.bottom, top: axis.top });
    filled.ends = meta.along ? endsOf(axis, meta, spec.height) : [];
    filled.exits = exitsOf(axis, meta);
    return { signals, filled };
  }
  // Means with the range of their seeds, which the axis holds too.
  function withSeeds(rows) {
    const ranges = new Map();
    for (const { series, regret } of rowsOf("seeds")) {
      const range = ranges.get(series) || [regret, regret];
      ranges.set(series, [Math.min(range[0], regret), Math.max(range[1], regret)]);
    }
    return rows.map((row) => {
      const [lowest, highest] = ranges.get(row.series) || [row.mean, row.mean];
      return { ...row, least: lowest, most: highest };
    });
  }
  function prepared(item, width) {
    const spec = structuredClone(pickedSpec(item.entry));
    if (!spec.facet) spec.width = width;
    else { // panels side by side, as large as fits; past that the figure scrolls
      const panels = new Set(rowsOf(spec.data.name).map((row) => row.arm)).size;
      spec.spec.width = spec.spec.height = Math.max(76, Math.floor((width - 30) / panels) - 62);
    }
    spec.config = structuredClone(data.themes[theme]);
    for (const part of parts(spec)) {
      for (const [name, channel] of Object.entries(part.encoding || {})) {
        if (!channel) continue;
        if (item.entry.switched && channel.field === "series" && ["color", "strokeDash", "shape"].includes(name))
          channel.scale = looks(name);
        if (narrow.matches && channel.axis && channel.axis.labelLimit) channel.axis.labelLimit = 120;
      }
    }
    if (narrow.matches) {
      for (const part of parts(spec)) {
        if (part.data && part.data.name === "ends") part.mark.limit = 84;
        if (part.encoding && part.encoding.x && part.encoding.x.axis) part.encoding.x.axis.tickCount = 3;
      }
      Object.assign(spec.config.axis, { labelLimit: 120, titleFontSize: 11, labelFontSize: 11 });
      Object.assign(spec.config.legend, { orient: "bottom", columns: 2 });
    }
    const { signals, filled } = following(item, spec);
    for (const param of spec.params || []) if (param.name in signals) param.value = signals[param.name];
    spec.datasets = { ...filled };
    for (const name of tablesOf(spec)) spec.datasets[name] = rowsOf(name).map((row) => ({ ...row }));
    return spec;
  }
  // Set on the compiled chart: Vega-Lite warns of every such chart that grows with its rows.
  const fitWidth = (chart) => ({ ...chart, autosize: { type: "fit-x", contains: "padding" } });
  function pickedSpec(entry) {
    const key = keyOf(entry.section);
    const variant = entry.variants.find(([name]) => name === key) || entry.variants[0];
    return variant[1];
  }
  async function draw(item) {
    const turn = (item.turn = (item.turn || 0) + 1);
    item.width = item.element.clientWidth;
    if (!item.width) return;
    const spec = prepared(item, item.width);
    const made = await vegaEmbed(item.element, spec, {
      actions: false, renderer: "svg", tooltip: { theme, disableDefaultStyle: false },
      patch: spec.facet ? undefined : fitWidth,
      logLevel: 1, // errors only: Vega warns of empty axes when no agent is drawn
    });
    if (turn !== item.turn) { made.finalize(); return; }
    if (item.made) item.made.finalize();
    item.made = made;
    item.spec = spec;
    item.element.dataset.drawn = String(turn);
    follow(item);
    if (item.entry.switched) {
      made.view.addEventListener("pointerover", (_, mark) => bringOut(seriesOf(mark)));
      made.view.addEventListener("pointerout", () => bringOut(""));
      made.view.addEventListener("click", (_, mark) => {
        const label = seriesOf(mark);
        state.kept = label && label !== state.kept ? label : "";
        bringOut(state.hovered);
      });
    }
  }
  // Cells around points hold the point's mark; a point's mark holds its row.
  function seriesOf(mark) {
    const row = mark && mark.datum && (mark.datum.datum || mark.datum);
    return (row && row.series) || "";
  }
  function bringOut(label) {
    state.hovered = label;
    const now = focus();
    for (const item of drawn)
      if (item.made && hasSignal(item.spec, "focus") && item.made.view.signal("focus") !== now)
        item.made.view.signal("focus", now).runAsync();
    for (const button of byId("agents").children) button.classList.toggle("out", button.label === now);
  }
  // Bring a chart that is there up to what is shown now.
  function follow(item) {
    if (!item.made || !item.entry.switched) return;
    const { signals, filled } = following(item, item.spec);
    const { view } = item.made;
    for (const [name, value] of Object.entries(signals)) view.signal(name, value);
    for (const [name, rows] of Object.entries(filled))
      if (parts(item.spec).some((part) => part.data && part.data.name === name)) view.data(name, rows);
    view.resize().runAsync();
  }
  function redrawAll() {
    for (const item of drawn) if (item.visible) draw(item);
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const seen of entries) {
      const item = drawn.find((one) => one.element === seen.target);
      if (item && seen.isIntersecting && !item.visible) { item.visible = true; draw(item); }
    }
  }, { rootMargin: "400px" });
  // Printing takes what is there: the charts below are drawn while nothing else is to do.
  const idle = window.requestIdleCallback || ((run) => setTimeout(run, 200));
  function drawNext() {
    const item = drawn.find((one) => !one.visible);
    if (!item) return;
    item.visible = true;
    draw(item).then(() => idle(drawNext));
  }
  let resizing = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      for (const item of drawn)
        if (item.visible && item.element.clientWidth !== item.width) draw(item);
    }, 150);
  });

  function place(entry) {
    const faceted = Boolean(entry.variants[0][1].facet);
    const element = faceted
      ? make("div", { class: "chart wide", tabindex: "0", role: "region", "aria-label": entry.title })
      : make("div", { class: "chart" });
    const item = { entry, element, made: null, visible: false };
    drawn.push(item);
    watcher.observe(element);
    const save = make("div", { class: "saves", role: "group", "aria-label": `Save: ${entry.title}` },
      make("span", { "aria-hidden": "true" }, "Save"),
      ...["SVG", "PNG", "CSV"].map((kind) => make("button", {
        type: "button", "aria-label": `Save as ${kind}: ${entry.title}`, onclick: () => saveChart(item, kind),
      }, kind)));
    return make("figure", { "aria-label": entry.title },
      entry.caption ? make("figcaption", {}, entry.caption) : null, element, save);
  }

  // Files ------------------------------------------------------------------------------------
  async function saveChart(item, kind) {
    if (!item.made) await draw(item);
    const name = item.entry.title.replace(/[^\p{L}\p{N}.=-]+/gu, "-").slice(0, 80);
    if (kind === "CSV") {
      const file = new Blob([csvOf(item)], { type: "text/csv;charset=utf-8" });
      const url = URL.createObjectURL(file);
      download(url, `${name}.csv`);
      setTimeout(() => URL.revokeObjectURL(url), 1000);
      return;
    }
    const { view } = item.made;
    view.background(data.papers[theme]);
    const url = await (kind === "SVG" ? view.toImageURL("svg") : view.toImageURL("png", 2));
    download(url, `${name}.${kind.toLowerCase()}`);
    view.background("transparent").runAsync();
  }
  const download = (url, name) => make("a", { href: url, download: name }).click();
  // The rows behind a chart: of what is shown, without the columns that only place things.
  const PLACING = ["pick", "order", "best", "dark", "text", "agent"];
  function csvOf(item) {
    const all = tablesOf(item.spec);
    const told = parts(item.spec).findLast((part) => part.encoding && part.encoding.tooltip && part.data
      && all.includes(part.data.name));
    const name = told ? told.data.name : all[0];
    const fields = packedOf(name, state.problem).fields.filter((field) => !PLACING.includes(field));
    const rows = rowsOf(name).filter((row) => !item.entry.switched || shownSet().has(row.series));
    return [fields, ...rows.map((row) => fields.map((field) => row[field]))]
      .map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  }
  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    // A name must not be read as a formula by a spreadsheet.
    const text = /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }

  // Sections ---------------------------------------------------------------------------------
  function picksOf(section) {
    if (!state.picks.has(section)) {
      const controls = data.sections.find((s) => s.id === section).controls;
      state.picks.set(section, new Map(controls.map((c) =>
        [c.name, c.options ? c.options[0].key : c.on ? c.name : ""])));
    }
    return state.picks.get(section);
  }
  const isSignal = (section, name) =>
    data.sections.find((s) => s.id === section).controls.some((c) => c.name === name && c.signal);
  const keyOf = (section) => [...picksOf(section)]
    .filter(([name, value]) => value && !isSignal(section, name)).map(([, value]) => value).join("+");

  function toolbar(section) {
    const bar = make("div", { class: "toolbar" });
    const picks = picksOf(section.id);
    const update = (change = draw) => drawn.forEach((i) => {
      if (i.entry.section === section.id && i.visible) change(i);
    });
    for (const control of section.controls) {
      if (control.options) {
        const known = new Set(entriesOf(section.id).flatMap((e) => e.variants.map(([k]) => k)));
        const options = control.options.filter((o) => known.has(o.key));
        if (options.length && !options.some((o) => o.key === picks.get(control.name)))
          picks.set(control.name, options[0].key);
        const group = make("div", { role: "group", "aria-label": control.label, class: "toolbar" });
        group.style.margin = "0";
        const buttons = options.map((option) => make("button", {
          type: "button",
          onclick: () => {
            picks.set(control.name, option.key);
            buttons.forEach((b, i) => press(b, options[i].key === option.key));
            update();
          },
        }, option.label));
        buttons.forEach((b, i) => press(b, options[i].key === picks.get(control.name)));
        group.append(...buttons);
        bar.append(group);
      } else {
        const button = make("button", {
          type: "button",
          onclick: () => {
            picks.set(control.name, picks.get(control.name) ? "" : control.name);
            press(button, Boolean(picks.get(control.name)));
            update(control.signal ? follow : draw);
          },
        }, control.label);
        press(button, Boolean(picks.get(control.name)));
        bar.append(button);
      }
    }
    return bar;
  }
  const entriesOf = (section) =>
    data.charts.filter((c) => c.section === section && c.problem === state.problem);

  function showSections() {
    for (const item of drawn) { watcher.unobserve(item.element); if (item.made) item.made.finalize(); }
    drawn.length = 0;
    state.hovered = state.kept = "";
    for (const section of data.sections) {
      const card = byId(section.id);
      const entries = entriesOf(section.id);
      const body = card.querySelector(".body");
      body.replaceChildren();
      card.hidden = entries.length === 0;
      byId(`to-${section.id}`).hidden = card.hidden;
      if (card.hidden) continue;
      byId(`${section.id}-where`).textContent = problem().name;
      if (section.controls.length) body.append(toolbar(section));
      const frame = entries.length > 1 ? make("div", { class: "grid" }) : body;
      entries.forEach((entry) => frame.append(place(entry)));
      if (frame !== body) body.append(frame);
      data.tables.filter((t) => t.section === section.id && t.problem === state.problem)
        .forEach((t) => body.append(plainTable(t)));
    }
    idle(drawNext);
  }

