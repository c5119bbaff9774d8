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
        line.firstChild.replaceChildren(make("div", { class: "first" }, button, ...line.firstChild.childNodes));
        block.push(below);
      }
      for (const part of block) part.agent = row.label || (Array.isArray(row) ? row[0] : "");
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
  // Rows of agents that are not searched for are hidden; what is unfolded stays as it is.
  function filterTables() {
    const all = new Set(problem().labels);
    const starts = (text, label) => text === label || text.startsWith(`${label} (`);
    for (const line of document.querySelectorAll("main tbody tr")) {
      const label = line.agent || "";
      const ours = [...all].find((one) => starts(label, one));
      line.classList.toggle("filtered", Boolean(state.found && ours && !state.found.all.has(ours)));
    }
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
        show: (r) => r.low === null ? "–" : `${number(r.low)} – ${number(r.high)}` },
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
      const kinds = { agrees: "agrees", explained: "agrees", differs: "differs" };
      card.append(sortable("Ours beside the published", [
        { title: "agent", left: true, value: (r) => r.label, show: (r) => r.label },
        { title: "table", left: true, value: (r) => r.table, show: (r) => r.table },
        { title: "ours", value: (r) => r.ours, show: (r) => `${number(r.ours)} ± ${number(r.ours_std)} (${r.ours_seeds})` },
        { title: "published", value: (r) => r.published, show: (r) => `${number(r.published)} ± ${number(r.published_std)} (${r.published_seeds})` },
        { title: "difference, 90 %", value: (r) => r.difference, show: (r) => r.interval },
        { title: "seen from", value: (r) => r.smallest, show: (r) => r.seen_from },
        { title: "p", value: (r) => r.p, show: (r) => r.p === null ? "–" : r.p < 1e-4 ? "<0.0001" : r.p.toPrecision(2) },
        { title: "verdict", left: true, value: (r) => r.verdict,
          show: (r) => make("span", { class: `badge ${kinds[r.verdict] || "unclear"}` }, r.verdict) },
      ], rows, { note: (r) => r.reason }));
    }
  }

