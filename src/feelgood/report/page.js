"use strict";
// Draws the report from the JSON in #data. Names from files reach the page as text nodes only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const narrow = window.matchMedia("(max-width: 860px)");
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");

  // Elements ---------------------------------------------------------------------------------
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "onclick") element.addEventListener("click", value);
      else if (value !== null && value !== false) element.setAttribute(name, value);
    }
    for (const child of children) if (child !== null) element.append(child);
    return element;
  }
  const press = (button, on) => button.setAttribute("aria-pressed", String(on));

  // Numbers ----------------------------------------------------------------------------------
  const decimals = (digits) =>
    new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const formats = [decimals(0), decimals(1), decimals(2), decimals(3)];
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 0.001 || size >= 1e7)) return value.toPrecision(3);
    return formats[size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3].format(value);
  }

  // State ------------------------------------------------------------------------------------
  const state = {
    problem: 0,
    shown: data.problems.map((p) => new Set(p.initially)),
    picks: new Map(), // section → what its buttons say
  };
  const problem = () => data.problems[state.problem];
  const drawn = []; // what is on the page now: { entry, element, view, visible }

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
  function rowsOf(name) {
    if (!tables.has(name)) {
      const packed = data.datasets[name];
      const columns = packed.columns.map((column) =>
        Array.isArray(column) ? column : column.index.map((i) => column.words[i]));
      const rows = Array.from({ length: packed.length }, (_, i) => {
        const row = {};
        packed.fields.forEach((field, k) => { row[field] = columns[k][i]; });
        return row;
      });
      tables.set(name, rows);
    }
    return tables.get(name).map((row) => ({ ...row }));
  }
  function prepared(specification, width) {
    const spec = structuredClone(specification);
    if (!spec.facet) spec.width = width;
    else { // panels side by side, as large as fits; past that the figure scrolls
      const panels = new Set(rowsOf(spec.data.name).map((row) => row.arm)).size;
      spec.spec.width = spec.spec.height = Math.max(76, Math.floor((width - 30) / panels) - 62);
    }
    spec.config = structuredClone(data.themes[theme]);
    if (narrow.matches) {
      spec.config.axis.labelLimit = 120;
      spec.config.axis.titleFontSize = 11;
      spec.config.axis.labelFontSize = 11;
      spec.config.legend.orient = "bottom";
      spec.config.legend.columns = 2;
      const limit = (part) => {
        for (const channel of Object.values(part.encoding || {}))
          if (channel && channel.axis && channel.axis.labelLimit) channel.axis.labelLimit = 120;
        (part.layer || []).forEach(limit);
      };
      limit(spec);
    }
    spec.datasets = {};
    const gather = (part) => {
      if (part.data && part.data.name) spec.datasets[part.data.name] = rowsOf(part.data.name);
      (part.layer || []).forEach(gather);
    };
    gather(spec);
    return spec;
  }
  // Set on the compiled chart: Vega-Lite warns of every such chart that grows with its rows.
  const fitWidth = (chart) => ({ ...chart, autosize: { type: "fit-x", contains: "padding" } });
  function shownLabels() {
    return problem().labels.filter((label) => state.shown[state.problem].has(label));
  }
  function pickedSpec(entry) {
    const key = keyOf(entry.section);
    const variant = entry.variants.find(([name]) => name === key) || entry.variants[0];
    return variant[1];
  }
  async function draw(item) {
    const turn = (item.turn = (item.turn || 0) + 1);
    item.width = item.element.clientWidth;
    const spec = prepared(pickedSpec(item.entry), item.width);
    if (item.entry.switched)
      spec.params.find((p) => p.name === data.signal).value = shownLabels();
    const made = await vegaEmbed(item.element, spec, {
      actions: false, renderer: "svg", tooltip: { theme, disableDefaultStyle: false },
      patch: spec.facet ? undefined : fitWidth,
      logLevel: 1, // errors only: Vega warns of empty axes when no agent is drawn
    });
    if (turn !== item.turn) { made.finalize(); return; }
    if (item.made) item.made.finalize();
    item.made = made;
    item.element.dataset.drawn = String(turn);
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
  window.addEventListener("beforeprint", () => {
    for (const item of drawn) if (!item.visible) { item.visible = true; draw(item); }
  });
  narrow.addEventListener("change", () => agentsBox());
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
    return make("figure", { "aria-label": entry.title },
      entry.caption ? make("figcaption", {}, entry.caption) : null, element);
  }
  async function saveSvg(section) {
    for (const item of drawn) {
      if (item.entry.section !== section || !item.made) continue;
      const url = await item.made.view.toImageURL("svg");
      make("a", { href: url, download: `${section}.svg` }).click();
    }
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
  const keyOf = (section) => [...picksOf(section).values()].filter(Boolean).join("+");

  function toolbar(section) {
    const bar = make("div", { class: "toolbar" });
    const picks = picksOf(section.id);
    const update = () => drawn.forEach((i) => {
      if (i.entry.section === section.id && i.visible) draw(i);
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
            update();
          },
        }, control.label);
        press(button, Boolean(picks.get(control.name)));
        bar.append(button);
      }
    }
    bar.append(make("button", { type: "button", class: "save", onclick: () => saveSvg(section.id) },
      "Save SVG"));
    return bar;
  }
  const entriesOf = (section) =>
    data.charts.filter((c) => c.section === section && c.problem === state.problem);

  function showSections() {
    for (const item of drawn) { watcher.unobserve(item.element); if (item.made) item.made.finalize(); }
    drawn.length = 0;
    for (const section of data.sections) {
      const card = byId(section.id);
      const entries = entriesOf(section.id);
      const body = card.querySelector(".body");
      body.replaceChildren();
      card.hidden = entries.length === 0;
      byId(`to-${section.id}`).hidden = card.hidden;
      if (card.hidden) continue;
      body.append(toolbar(section));
      const frame = entries.length > 1 ? make("div", { class: "grid" }) : body;
      entries.forEach((entry) => frame.append(place(entry)));
      if (frame !== body) body.append(frame);
      data.tables.filter((t) => t.section === section.id && t.problem === state.problem)
        .forEach((t) => body.append(plainTable(t)));
    }
  }

  // Agents -----------------------------------------------------------------------------------
  const svg = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  function swatch(label) {
    const place = Math.max(data.labels.indexOf(label), 0);
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
    const shown = state.shown[state.problem];
    for (const item of drawn)
      if (item.made && item.entry.switched)
        item.made.view.signal(data.signal, shownLabels()).runAsync();
    byId("agents-count").textContent = `${shown.size} of ${problem().labels.length}`;
    for (const button of byId("agents").children) press(button, shown.has(button.label));
  }
  function showAgents() {
    const shown = state.shown[state.problem];
    byId("agents").replaceChildren(...problem().labels.map((label) => {
      const button = make("button", {
        type: "button",
        onclick: () => {
          if (shown.has(label)) shown.delete(label); else shown.add(label);
          applyShown();
        },
      }, swatch(label), make("span", {}, label));
      button.label = label;
      press(button, shown.has(label));
      return button;
    }));
    byId("agents-best").textContent =
      problem().labels.length > data.few ? `Best ${problem().initially.length}` : "Best 3";
    byId("agents-count").textContent = `${shown.size} of ${problem().labels.length}`;
  }
  function setShown(labels) {
    const shown = state.shown[state.problem];
    shown.clear();
    labels.forEach((label) => shown.add(label));
    applyShown();
  }
  byId("agents-best").addEventListener("click", () =>
    setShown(problem().labels.length > data.few ? problem().initially : problem().labels.slice(0, 3)));
  byId("agents-all").addEventListener("click", () => setShown(problem().labels));
  byId("agents-none").addEventListener("click", () => setShown([]));
  const agentsBox = () => { byId("agents-box").open = !narrow.matches; };

  // Tables -----------------------------------------------------------------------------------
  // A column: { title, left, value(row) → number or string, show(row) → text or element }.
  function sortable(caption, columns, rows, { details = null, note = null }) {
    const body = make("tbody");
    const blocks = rows.map((row) => {
      const line = make("tr", { class: "row" }, ...columns.map((column) =>
        make("td", { class: column.left ? "left" : null }, column.show(row))));
      const block = [line];
      const under = (name, content) => make("tr", { class: name },
        make("td", { colspan: columns.length }, make("div", { class: "stay" }, content)));
      if (note && note(row)) {
        line.classList.add("noted");
        block.push(under("note", note(row)));
      }
      if (details) {
        const below = under("spec", "");
        below.hidden = true;
        const button = make("button", {
          type: "button", class: "more", "aria-expanded": "false",
          "aria-label": `Specification of ${row.label}`, title: "Specification",
          onclick: () => {
            const inside = below.querySelector(".stay");
            if (!inside.firstChild || !inside.firstChild.tagName) inside.replaceChildren(details(row));
            below.hidden = !below.hidden;
            button.setAttribute("aria-expanded", String(!below.hidden));
          },
        });
        line.firstChild.prepend(button);
        block.push(below);
      }
      return { row, block };
    });
    const heads = columns.map((column, k) => {
      const head = make("th", { scope: "col", class: column.left ? "left" : null });
      head.setAttribute("aria-sort", "none");
      head.append(make("button", { type: "button", onclick: () => sort(k) }, column.title));
      return head;
    });
    function sort(k) {
      const up = heads[k].getAttribute("aria-sort") !== "ascending";
      heads.forEach((head, i) => {
        head.setAttribute("aria-sort", i !== k ? "none" : up ? "ascending" : "descending");
      });
      const value = (block) => columns[k].value(block.row);
      blocks.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null); // gaps come last
        const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
        return up ? order : -order;
      });
      body.replaceChildren(...blocks.flatMap((b) => b.block));
    }
    body.append(...blocks.flatMap((b) => b.block));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
  }
  const plainTable = (table) => make("div", {},
    make("p", { class: "about" }, table.title),
    sortable(table.title, table.head.map((title, k) =>
      ({ title, left: k === 0, value: (r) => leading(r[k]), show: (r) => r[k] })), table.rows, {}));
  const leading = (text) => {
    const found = parseFloat(text.replace(/,/g, ""));
    return Number.isNaN(found) ? text : found;
  };
  const named = (label) => make("span", { class: "name" }, swatch(label), label);
  const plain = (title, field) => ({ title, value: (r) => r[field], show: (r) => number(r[field]) });
  function pairs(title, entries) {
    if (!entries.length) return null;
    const list = make("dl", { class: "pairs" });
    for (const [name, value] of entries) list.append(make("dt", {}, name), make("dd", {}, value));
    return make("div", {}, make("h4", {}, title), list);
  }
  function specification(row) {
    return make("div", { class: "spec-grid" },
      pairs("Run", row.run), pairs("Agent settings", row.settings),
      pairs("Testbed settings", row.testbed_settings), pairs("Provenance", row.provenance));
  }
  function showTables() {
    const results = data.results[state.problem];
    byId("numbers").hidden = byId("to-numbers").hidden = results.length === 0;
    byId("numbers").querySelector(".body").replaceChildren(sortable("All results", [
      { title: "agent", left: true, value: (r) => r.label, show: (r) => named(r.label) },
      plain("mean regret", "mean"), plain("std", "std"),
      { title: "95 % interval", value: (r) => r.low,
        show: (r) => r.low === null ? "–" : `${number(r.low)} to ${number(r.high)}` },
      plain("median", "median"), plain("last 500", "simple"),
      { title: "best arm", value: (r) => r.best_arm,
        show: (r) => r.best_arm === null ? "–" : `${number(100 * r.best_arm)} %` },
      { title: "diverged", value: (r) => r.diverged, show: (r) => r.diverged ? `${r.diverged} of ${r.chains}` : "0" },
      plain("gradients", "gradients"), plain("seconds", "seconds"),
    ], results, { details: specification }));
    const card = byId("published");
    const rows = data.published[state.problem];
    const old = card.querySelector(".scroll");
    if (old) old.remove();
    if (rows.length) {
      const kinds = { agrees: "agrees", differs: "differs" };
      card.append(sortable("Ours beside the published", [
        { title: "table", left: true, value: (r) => r.table, show: (r) => r.table },
        { title: "agent", left: true, value: (r) => r.label, show: (r) => r.label },
        { title: "ours", value: (r) => r.ours, show: (r) => `${number(r.ours)} ± ${number(r.ours_std)} (${r.ours_seeds})` },
        { title: "published", value: (r) => r.published, show: (r) => `${number(r.published)} ± ${number(r.published_std)} (${r.published_seeds})` },
        plain("difference", "difference"),
        { title: "p", value: (r) => r.p, show: (r) => r.p === null ? "–" : r.p < 1e-4 ? "<0.0001" : r.p.toPrecision(2) },
        { title: "verdict", left: true, value: (r) => r.verdict,
          show: (r) => make("span", { class: `badge ${kinds[r.verdict] || "unclear"}` }, r.verdict) },
      ], rows, { note: (r) => r.reason }));
    }
  }

  // The frame --------------------------------------------------------------------------------
  function showProblem(index) {
    state.problem = index;
    [...byId("problems").children].forEach((button, i) => press(button, i === index));
    showAgents();
    showSections();
    showTables();
  }
  function link(id, title) {
    byId("sections").append(make("li", { id: `to-${id}` }, make("a", { href: `#${id}` }, title)));
  }
  function card(id, title, about) {
    link(id, title);
    const section = make("section", { class: "card", id, "aria-labelledby": `${id}-title` },
      make("h2", { id: `${id}-title` }, title),
      about ? make("p", { class: "about" }, about) : null, make("div", { class: "body" }));
    byId("content").append(section);
    return section;
  }
  function overview() {
    const section = card("overview", "Overview", data.overview.about);
    const facts = make("dl", { class: "facts" });
    for (const [name, value] of data.overview.facts)
      facts.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    section.append(facts);
    if (data.overview.warnings.length)
      section.append(make("div", { class: "notice", role: "note" },
        make("ul", {}, ...data.overview.warnings.map((text) => make("li", {}, text)))));
    section.append(make("ul", { class: "verdicts" }, ...data.overview.verdicts.map(
      ([name, text]) => make("li", {}, make("strong", {}, name), make("span", {}, text)))));
  }
  byId("lede").textContent = data.lede;
  byId("end").textContent = data.end;
  overview();
  data.sections.forEach((section) => card(section.id, section.title, section.about));
  card("numbers", "All numbers", data.numbers_about);
  byId("problems").append(...data.problems.map((p, i) =>
    make("button", { type: "button", onclick: () => showProblem(i) }, p.name)));
  agentsBox();
  byId("theme").addEventListener("click", () => setTheme(theme === "dark" ? "light" : "dark", true));
  systemDark.addEventListener("change", () => {
    if (!remembered()) setTheme(systemDark.matches ? "dark" : "light", false);
  });
  const kept = remembered();
  setTheme(kept === "dark" || kept === "light" ? kept : systemDark.matches ? "dark" : "light", false);
  showProblem(0);
})();
