  // Ends of axes and names at the ends of lines ------------------------------------------------
  // An agent that is far above the others leaves the picture, and is marked, so that the others
  // can be told apart: from the upper half on, the first that is four times the one below it.
  const FAR = 4;
  const LINE = 13; // pixels between two names
  function far(peaks) {
    const values = [...peaks.values()].sort((a, b) => a - b);
    for (let i = Math.max(2, Math.ceil(values.length / 2)); i < values.length; i++)
      if (values[i - 1] > 0 && values[i] > FAR * values[i - 1]) return values[i - 1];
    return Infinity;
  }
  const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const finite = (values) => values.filter((v) => v !== null && v !== undefined && Number.isFinite(v));

  // The ends of a chart's axis of values for the agents that are shown, and what leaves it.
  function axisOf(meta, rows, whole) {
    const bySeries = new Map();
    for (const row of rows) {
      if (!shownSet().has(row.series) || row[meta.value] === null) continue;
      if (meta.log && !(row[meta.value] > 0)) continue;
      if (!bySeries.has(row.series)) bySeries.set(row.series, []);
      bySeries.get(row.series).push(row);
    }
    const peaks = new Map([...bySeries].map(([label, own]) => [label, most(own.map((r) => r[meta.value]))]));
    const limit = meta.log || whole || meta.ends ? Infinity : far(peaks);
    const inside = [...bySeries].filter(([label]) => peaks.get(label) <= limit);
    let top = -Infinity;
    let bottom = Infinity;
    for (const [label, own] of inside) {
      const values = finite(own.flatMap((r) => [r[meta.value], r[meta.also]]));
      const highs = finite(own.flatMap((r) => [r[meta.high], r.most]));
      const lows = finite(own.flatMap((r) => [r[meta.low], r.least]));
      // A wide band must not flatten the lines either; dots and intervals are kept whole.
      const peak = most(values);
      top = Math.max(top, peak, meta.along ? Math.min(most(highs), 1.5 * peak) : most(highs));
      const floor = meta.log ? peak / 1e6 : -Infinity;
      bottom = Math.min(bottom, least(values), meta.along ? Infinity : Math.max(floor, least(lows.filter((v) => !meta.log || v > 0))));
    }
    if (meta.ends) [bottom, top] = meta.ends;
    else if (!(top > -Infinity)) [bottom, top] = meta.log ? [1, 10] : [0, 1];
    else if (meta.log) {
      if (meta.along) bottom = Math.max(bottom, top / 1e4);
      [bottom, top] = [bottom / 1.08, top * 1.08];
    } else {
      if (meta.zero) bottom = Math.min(bottom, 0);
      const room = (top - bottom || Math.abs(top) || 1) * 0.04;
      top += room;
      if (!meta.zero) bottom -= room;
    }
    return { bottom, top, bySeries, outside: [...bySeries.keys()].filter((l) => peaks.get(l) > limit), peaks };
  }
  // Agents whose curves are equal share a name, "a = b"; any other has its own.
  function namesOf(labels) {
    const names = new Map();
    const done = new Set();
    for (const label of labels) {
      if (done.has(label)) continue;
      const same = (sameAs[state.problem].get(label) || [label]).filter((l) => labels.includes(l));
      same.forEach((l) => done.add(l));
      names.set(label, same);
    }
    return names;
  }
  // Names beside the ends of lines: pushed up where they would overlap, then back into the picture.
  function endsOf(axis, meta, height) {
    const place = (value) => {
      const part = meta.log
        ? Math.log(value / axis.bottom) / Math.log(axis.top / axis.bottom)
        : (value - axis.bottom) / (axis.top - axis.bottom);
      return height * Math.min(Math.max(part, 0), 1);
    };
    const out = new Set(axis.outside);
    const named = namesOf(shownLabels().filter((label) => axis.bySeries.has(label)));
    let ends = [...named].map(([label, same]) => {
      const name = same.join(" = ");
      const last = axis.bySeries.get(label).at(-1)[meta.value];
      const gone = out.has(label);
      return { series: label, same, text: !gone ? name : narrow.matches ? `↑ ${name}` : `↑ ${number(last)} ${name}`,
        up: gone ? height + last / axis.peaks.get(label) : place(last), last };
    });
    // More names than lines of text fit: those of the best agents.
    ends = ends.slice(0, Math.max(Math.floor(height / LINE), 1));
    ends.sort((a, b) => a.up - b.up || a.last - b.last);
    let below = -Infinity;
    for (const end of ends) below = end.up = Math.max(end.up, below + LINE);
    let above = height + LINE;
    for (const end of [...ends].reverse()) above = end.up = Math.min(end.up, above - LINE);
    return ends.map(({ series, same, text, up }) => ({ series, same, text, at: height - up }));
  }
  // Where the lines of the agents outside cross the upper edge.
  function exitsOf(axis, meta) {
    return axis.outside.map((label) => {
      const own = axis.bySeries.get(label);
      const last = own.at(-1)[meta.value];
      if (!meta.along) {
        return { series: label, order: own[0].order, text: `${number(last)} ▸` };
      }
      const next = Math.max(own.findIndex((row) => row[meta.value] > axis.top), 0);
      const [a, b] = [own[Math.max(next - 1, 0)], own[next]];
      const step = b[meta.value] - a[meta.value];
      const part = step > 0 ? (axis.top - a[meta.value]) / step : 0;
      return { series: label, [meta.along]: a[meta.along] + part * (b[meta.along] - a[meta.along]),
        text: `ends at ${number(last)}` };
    });
  }

