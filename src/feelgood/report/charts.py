"""Altair charts of results, one function a chart.

Everything is aggregated here; a chart holds means, bands and intervals, and at most `DOTS` seeds of
a result. What they share, and how they become files, is in `feelgood.report.drawing`.

The functions on lists of `AgentResult` draw one panel for every testbed. Each rests on a function
that draws one panel (`…_panel`), which the page uses with its own `Style`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np

from feelgood.errors import FeelgoodError, did_you_mean
from feelgood.metrics import Summary
from feelgood.report.drawing import (
    DOTS,
    PICKS,
    Chart,
    Rows,
    Style,
    as_table,
    by_mean,
    column_means,
    column_quantiles,
    figures,
    highlight,
    label_axis,
    layered,
    number_axis,
    panels,
    plain_colour,
    regret_interval,
    side_by_side,
    std_of,
    thin,
    value_scale,
)
from feelgood.report.series import Series, Sweep, find_sweeps, name_series, ordered_labels
from feelgood.report.series import show_value as show
from feelgood.report.tables import Comparison
from feelgood.results import AgentResult
from feelgood.statistics import compute_of

Band = Literal["quantile", "std"]

MEASURES = {
    "ess": "effective sample size of 200 draws",
    "acceptance": "acceptance probability",
    "gradients": "gradient evaluations a round",
    "step": "step size",
    "divergences": "divergent proposals a round",
}


# Regret along the run ------------------------------------------------------------------------


def regret_curves(
    results: Sequence[AgentResult],
    *,
    log_x: bool = False,
    log_y: bool = False,
    band: Band = "quantile",
) -> Chart:
    """Mean cumulative regret along the run, with a band over seeds."""
    return panels(results, lambda s, style: curves_panel(s, style, log_x, log_y, band))


def curves_panel(
    series: Sequence[Series],
    style: Style,
    log_x: bool = False,
    log_y: bool = False,
    band: Band = "quantile",
) -> alt.LayerChart:
    """One testbed's regret curves."""
    rows = [row for s in series for row in curve_rows(s, style.points, band)]
    base = style.data(rows)
    if log_y:
        base = base.transform_filter("datum.mean > 0").transform_calculate(
            low="max(datum.low, datum.mean / 100)"
        )
    rounds = [row["round"] for row in rows] if log_x else []
    means = [row["mean"] for row in rows] if log_y else []
    x = alt.X(
        "round:Q", title="round", scale=value_scale(log_x, nice=False), axis=number_axis(rounds)
    )
    title = "cumulative regret (sum of mean reward lost)"
    y = alt.Y("mean:Q", title=title, scale=value_scale(log_y), axis=number_axis(means))
    pick, opacity = highlight(style)
    bands = "10 to 90 % of seeds" if band == "quantile" else "mean ± std"
    areas = base.mark_area(opacity=0.1, interpolate="monotone").encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=style.colour()
    )
    lines = base.mark_line(strokeWidth=2, interpolate="monotone", clip=True).encode(
        x=x, y=y, color=style.colour(), strokeDash=style.dash(), opacity=opacity
    )
    hover = alt.selection_point(
        name=f"hover_{style.panel_number}",
        nearest=True,
        on="pointerover",
        clear="pointerout",
        empty=False,
    )
    dots = (
        base.transform_filter("datum.pick")
        .mark_point(filled=True, size=70)
        .encode(
            x=x,
            y=y,
            color=style.colour(),
            opacity=alt.when(hover).then(alt.value(1)).otherwise(alt.value(0)),
            tooltip=[
                alt.Tooltip("series:N", title="agent"),
                alt.Tooltip("round:Q", format=",d"),
                alt.Tooltip("mean:Q", title="mean regret", format=",.4~g"),
                alt.Tooltip("band:N", title=bands),
                alt.Tooltip("seeds:Q", title="chains"),
            ],
        )
        .transform_calculate(
            band="format(datum.low, ',.4~g') + ' to ' + format(datum.high, ',.4~g')"
        )
        .add_params(hover)
    )
    if pick is not None:
        lines = lines.add_params(pick)
    return style.panel(areas, lines, dots)


def curve_rows(series: Series, points: int, band: Band) -> Rows:
    """The mean and the band at `points` of the recorded rounds, the last among them."""
    r = series.result
    kept = thin(len(r.curve_rounds), points)
    values = r.curve[:, kept]
    alive = np.isfinite(values).sum(axis=0)
    mean = column_means(values)
    if band == "std":
        spread = np.array([std_of(column) for column in values.T])
        low, high = np.maximum(mean - spread, 0.0), mean + spread
    else:
        low, high = column_quantiles(values, (0.1, 0.9))
    picked = set(thin(len(kept), PICKS).tolist())
    return [
        {
            "series": series.label,
            "round": int(r.curve_rounds[kept[i]]),
            "mean": figures(mean[i]),
            "low": figures(low[i]),
            "high": figures(high[i]),
            "seeds": int(alive[i]),
            "pick": int(i in picked),
        }
        for i in range(len(kept))
        if alive[i]
    ]


# Final regret --------------------------------------------------------------------------------


def final_intervals(results: Sequence[AgentResult], *, log_x: bool = False) -> Chart:
    """Mean final regret with its 95 % bootstrap interval, and the seeds behind it."""
    return panels(results, lambda s, style: final_panel(s, style, log_x))


def final_panel(series: Sequence[Series], style: Style, log_x: bool = False) -> alt.LayerChart:
    """One testbed's final regrets, the lowest mean on top."""
    means: Rows = []
    seeds: Rows = []
    for order, s in enumerate(sorted(series, key=by_mean)):
        estimate = regret_interval(s.result)
        if estimate.count == 0:
            continue
        name = {"series": s.label, "order": order}
        means.append(
            name
            | {
                "mean": figures(estimate.value),
                "low": figures(estimate.low if estimate.count > 1 else estimate.value),
                "high": figures(estimate.high if estimate.count > 1 else estimate.value),
                "seeds": estimate.count,
                "diverged": estimate.dropped,
            }
        )
        finite = np.sort(s.result.final_regret[np.isfinite(s.result.final_regret)])
        seeds += [name | {"regret": figures(v)} for v in finite[thin(len(finite), DOTS)]]
    positive = "datum.{0} > 0" if log_x else "isValid(datum.{0})"
    y = alt.Y(
        "series:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis()
    )
    axis = number_axis([row["regret"] for row in seeds] if log_x else [])
    title = "final cumulative regret"
    x = alt.X("mean:Q", title=title, scale=value_scale(log_x, zero=False), axis=axis)
    base = style.data(means).transform_filter(positive.format("low"))
    points = (
        style.data(seeds)
        .transform_filter(positive.format("regret"))
        .mark_circle(size=14, opacity=0.28)
        .encode(x=alt.X("regret:Q", title=title), y=y, color=plain_colour(style))
    )
    rules = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=title), x2="high:Q", y=y, color=plain_colour(style)
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=y,
        color=plain_colour(style),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("mean:Q", title="mean regret", format=",.4~g"),
            alt.Tooltip("low:Q", title="interval from", format=",.4~g"),
            alt.Tooltip("high:Q", title="to", format=",.4~g"),
            alt.Tooltip("seeds:Q", title="chains"),
            alt.Tooltip("diverged:Q", title="diverged"),
        ],
    )
    return style.panel(points, rules, dots, height=alt.Step(24))


# Sweeps --------------------------------------------------------------------------------------


def sweep_charts(results: Sequence[AgentResult]) -> Chart:
    """All sweeps: heat maps over two settings, lines over one."""
    series = name_series(results)
    found = find_sweeps(series)
    if not found:
        raise FeelgoodError(
            "no setting is swept here: run an agent with a list of values, such as lam = [0, 0.1]."
        )
    several = len({s.problem for s in found}) > 1
    maps = [
        heat_map(sweep, width=320).properties(title=_title(sweep, several))
        for sweep in found
        if len(sweep.axes) == 2
    ]
    lines = [
        sweep_lines(group, width=360).properties(title=_problem_title(group, several))
        for group in group_lines(found)
    ]
    chart = side_by_side([*maps, *lines])
    return chart.resolve_scale(color="independent", strokeDash="independent")


def group_lines(sweeps: Sequence[Sweep]) -> list[list[Sweep]]:
    """Sweeps over one setting, those over the same setting of the same problem together."""
    groups: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in sweeps:
        if len(sweep.axes) == 1:
            groups.setdefault((sweep.problem, sweep.axes[0]), []).append(sweep)
    return list(groups.values())


def heat_map(sweep: Sweep, width: int | Literal["container"] = 320) -> alt.LayerChart:
    """Mean final regret over two settings; the darker the lower, the best one framed."""
    a, b = sweep.axes
    rows: Rows = []
    for s in sweep.members:
        summary = s.result.regret
        if summary.count:
            rows.append(
                {
                    "x": show(s.result.settings[a]),
                    "y": show(s.result.settings[b]),
                    "mean": figures(summary.mean),
                    "std": figures(summary.std) if summary.count > 1 else None,
                    "seeds": summary.count,
                    "text": f"{summary.mean:,.3g}"
                    if summary.mean < 1e3
                    else f"{summary.mean:,.0f}",
                }
            )
    means = [row["mean"] for row in rows]
    best = min(means)
    for row in rows:
        row["best"] = int(row["mean"] == best)
        row["dark"] = int(_relative(row["mean"], means) < 0.5)
    base = alt.Chart(as_table(rows))
    x = alt.X("x:O", title=a, sort=_levels(sweep, a), axis=alt.Axis(labelAngle=0))
    y = alt.Y("y:O", title=b, sort=_levels(sweep, b)[::-1])
    tiles = base.mark_rect().encode(
        x=x,
        y=y,
        color=alt.Color(
            "mean:Q",
            title="mean final regret",
            scale=alt.Scale(scheme="cividis", type="log" if _wide(means) else "linear", nice=False),
            legend=alt.Legend(format=",.3~r", gradientLength=140, values=[min(means), max(means)]),
        ),
        tooltip=[
            alt.Tooltip("x:O", title=a),
            alt.Tooltip("y:O", title=b),
            alt.Tooltip("mean:Q", title="mean final regret", format=",.4~g"),
            alt.Tooltip("std:Q", format=",.3~g"),
            alt.Tooltip("seeds:Q", title="chains"),
        ],
    )
    frame = base.transform_filter("datum.best").mark_rect(
        filled=False, stroke="#ff7a1a", strokeWidth=3
    )
    numbers = base.mark_text(fontSize=12).encode(
        x=x,
        y=y,
        text="text:N",
        color=alt.when("datum.dark").then(alt.value("#ffffff")).otherwise(alt.value("#101418")),
    )
    return layered((tiles, frame.encode(x=x, y=y), numbers), width, alt.Step(34))


def sweep_lines(sweeps: Sequence[Sweep], width: int | Literal["container"] = 360) -> alt.LayerChart:
    """Mean final regret over one setting with 95 % intervals, one line an agent."""
    axis = sweeps[0].axes[0]
    rows: Rows = []
    for sweep in sweeps:
        for s in sorted(sweep.members, key=lambda s: _level_key(s.result.settings[axis])):
            estimate = regret_interval(s.result)
            if estimate.count:
                rows.append(
                    {
                        "series": sweep.name,
                        "x": show(s.result.settings[axis]),
                        "mean": figures(estimate.value),
                        "low": figures(estimate.low),
                        "high": figures(estimate.high),
                        "seeds": estimate.count,
                    }
                )
    order = list(dict.fromkeys(level for sweep in sweeps for level in _levels(sweep, axis)))
    values = {
        show(s.result.settings[axis]): s.result.settings[axis] for w in sweeps for s in w.members
    }
    order.sort(key=lambda level: _level_key(values[level]))
    style = Style(labels=tuple(dict.fromkeys(sweep.name for sweep in sweeps)))
    base = alt.Chart(as_table(rows))
    x = alt.X("x:O", title=axis, sort=order, axis=alt.Axis(labelAngle=0))
    title = "mean final regret"
    colour = alt.Color("series:N", title="agent", scale=alt.Scale(domain=list(style.labels)))
    dash = style.dash()
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False), axis=number_axis())
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=colour
    )
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("x:O", title=axis),
            alt.Tooltip("mean:Q", title="mean final regret", format=",.4~g"),
            alt.Tooltip("low:Q", title="interval from", format=",.4~g"),
            alt.Tooltip("high:Q", title="to", format=",.4~g"),
            alt.Tooltip("seeds:Q", title="chains"),
        ],
    )
    return layered((bars, lines, points), width, 260)


def _title(sweep: Sweep, several: bool) -> str:
    return f"{sweep.problem}: {sweep.name}" if several else sweep.name


def _problem_title(group: Sequence[Sweep], several: bool) -> str:
    return group[0].problem if several else f"over {group[0].axes[0]}"


def _level_key(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


def _levels(sweep: Sweep, axis: str) -> list[str]:
    """The values of a swept setting in their order, as they are shown."""
    values = sorted((s.result.settings[axis] for s in sweep.members), key=_level_key)
    return list(dict.fromkeys(show(value) for value in values))


def _wide(values: Sequence[float]) -> bool:
    """Whether a logarithmic scale shows these better."""
    return len(values) > 0 and min(values) > 0 and max(values) > 5 * min(values)


def _relative(value: float, values: Sequence[float]) -> float:
    """Where a value lies between the smallest and the largest, 0 to 1."""
    low, high = min(values), max(values)
    if _wide((low, high)):
        value, low, high = math.log(value), math.log(low), math.log(high)
    return (value - low) / (high - low) if high > low else 0.0


# Beside the published ------------------------------------------------------------------------


def beside_published(
    comparisons: Sequence[Comparison], width: int | Literal["container"] = 520
) -> alt.LayerChart:
    """Ours beside the published, mean ± std of each, on a logarithmic axis."""
    done = [c for c in comparisons if c.ours is not None]
    if not done:
        raise FeelgoodError(
            "nothing here is in the paper's tables: run 'feelgood reproduce' for a comparison."
        )
    several = len({c.row.testbed for c in done}) > 1
    data: Rows = []
    for order, c in enumerate(done):
        theirs = c.row.published
        for source, of in (("ours", c.ours), ("published", theirs)):
            if of is None or not of.mean > 0:
                continue
            spread = of.std if math.isfinite(of.std) else 0.0
            data.append(
                {
                    "row": f"{c.row.testbed} {c.label}" if several else c.label,
                    "order": order,
                    "table": theirs.table,
                    "source": source,
                    "mean": figures(of.mean),
                    "std": figures(spread),
                    "low": figures(max(of.mean - spread, of.mean / 10)),
                    "high": figures(of.mean + spread),
                    "seeds": of.count if isinstance(of, Summary) else of.seeds,
                    "verdict": c.verdict.value,
                }
            )
    base = alt.Chart(as_table(data))
    y = alt.Y("row:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis())
    offset = alt.YOffset("source:N", sort=["ours", "published"])
    title = "regret: mean ± std, logarithmic"
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = number_axis([row[end] for row in data for end in ("low", "high")])
    sources = ["ours", "published"]
    colour = alt.Color(
        "source:N", title=None, scale=alt.Scale(domain=sources), legend=alt.Legend(orient="top")
    )
    shape = alt.Shape(
        "source:N",
        title=None,
        scale=alt.Scale(domain=sources, range=["circle", "diamond"]),
        legend=alt.Legend(orient="top"),
    )
    faint = (
        alt.when("datum.verdict == 'not comparable'").then(alt.value(0.35)).otherwise(alt.value(1))
    )
    rules = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=title, scale=scale, axis=axis),
        x2="high:Q",
        y=y,
        yOffset=offset,
        color=colour,
        opacity=faint,
    )
    points = base.mark_point(filled=True, size=60).encode(
        x=alt.X("mean:Q", title=title, scale=scale, axis=axis),
        y=y,
        yOffset=offset,
        color=colour,
        shape=shape,
        opacity=faint,
        tooltip=[
            alt.Tooltip("row:N", title="agent"),
            alt.Tooltip("table:N"),
            alt.Tooltip("source:N", title="from"),
            alt.Tooltip("mean:Q", format=",.4~g"),
            alt.Tooltip("std:Q", format=",.3~g"),
            alt.Tooltip("seeds:Q"),
            alt.Tooltip("verdict:N"),
        ],
    )
    return layered((rules, points), width, alt.Step(13))


# Sampler health ------------------------------------------------------------------------------


def sampler_health(results: Sequence[AgentResult], measure: str | None = None) -> Chart:
    """How the samplers did along the run; all measures, or one of them."""
    series = name_series(results)
    found = health_measures(series)
    if not found:
        raise FeelgoodError("no agent here has a sampler: there is no health to show.")
    if measure is not None and measure not in found:
        raise FeelgoodError(f"no '{measure}' is recorded here: {did_you_mean(measure, found)}")
    chosen = found if measure is None else [measure]
    style = Style(labels=tuple(ordered_labels(series)), width=420, height=240)
    problems = list(dict.fromkeys(s.problem for s in series))
    return side_by_side(
        [
            health_panel([s for s in series if s.problem == problem], style, name).properties(
                title=f"{problem}: {MEASURES.get(name, name)}"
            )
            for problem in problems
            for name in chosen
        ]
    )


def health_measures(series: Sequence[Series]) -> list[str]:
    """What the samplers recorded, in the order of `MEASURES`, others after."""
    found = {name for s in series for name in s.result.health}
    if any(np.isfinite(s.result.ess).any() for s in series):
        found.add("ess")
    order = list(MEASURES)
    return sorted(found, key=lambda n: (order.index(n) if n in order else len(order), n))


def health_panel(series: Sequence[Series], style: Style, measure: str) -> alt.LayerChart:
    """One measure on one testbed: means over seeds along the run; ESS at its end, a bar each."""
    title = MEASURES.get(measure, measure)
    if measure == "ess":
        return _ess_panel(series, style, title)
    rows: Rows = []
    for s in series:
        values = s.result.health.get(measure)
        if values is None:
            continue
        kept = thin(len(s.result.curve_rounds), style.points // 2)
        means = column_means(values[:, kept])
        rows += [
            {"series": s.label, "round": int(s.result.curve_rounds[k]), "mean": figures(m)}
            for k, m in zip(kept, means, strict=True)
            if math.isfinite(m)
        ]
    seen = [row["mean"] for row in rows]
    log = measure == "step" and _wide(seen)
    scale = value_scale(log)
    if measure == "acceptance" or not any(seen):
        scale = alt.Scale(domain=[0, 1])
    x = alt.X("round:Q", title="round", scale=alt.Scale(nice=False), axis=number_axis())
    axis = number_axis(seen if log else [])
    y = alt.Y("mean:Q", title=f"{title} (mean over seeds)", scale=scale, axis=axis)
    base = style.data(rows)
    lines = base.mark_line(strokeWidth=2).encode(
        x=x, y=y, color=style.colour(), strokeDash=style.dash()
    )
    dots = base.mark_point(filled=True, size=40, opacity=0).encode(
        x=x,
        y=y,
        color=style.colour(),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("round:Q", format=",d"),
            alt.Tooltip("mean:Q", title=title, format=".4~g"),
        ],
    )
    return style.panel(lines, dots)


def _ess_panel(series: Sequence[Series], style: Style, title: str) -> alt.LayerChart:
    rows: Rows = []
    for s in series:
        finite = s.result.ess[np.isfinite(s.result.ess)]
        if len(finite):
            low, middle, high = np.quantile(finite, [0.1, 0.5, 0.9])
            rows.append(
                {
                    "series": s.label,
                    "middle": figures(middle),
                    "low": figures(low),
                    "high": figures(high),
                }
            )
    x_title = f"{title} (median, 10 to 90 % of seeds)"
    for order, row in enumerate(sorted(rows, key=lambda row: -row["middle"])):
        row["order"] = order
    y = alt.Y(
        "series:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis()
    )
    base = style.data(rows)
    rules = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q", title=x_title), x2="high:Q", y=y, color=plain_colour(style)
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("middle:Q", title=x_title, scale=alt.Scale(zero=True), axis=number_axis()),
        y=y,
        color=plain_colour(style),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("middle:Q", title="median", format=".4~g"),
            alt.Tooltip("low:Q", title="10 %", format=".4~g"),
            alt.Tooltip("high:Q", title="90 %", format=".4~g"),
        ],
    )
    return style.panel(rules, dots, height=alt.Step(24))


# Regret against compute ----------------------------------------------------------------------

Cost = Literal["gradients", "seconds"]
COSTS: Mapping[Cost, str] = {
    "gradients": "gradient evaluations of a chain, logarithmic",
    "seconds": "seconds of a chain (its share of the run), logarithmic",
}


def regret_against_compute(results: Sequence[AgentResult], cost: Cost = "gradients") -> Chart:
    """Mean final regret against what a chain cost: lower left is better."""
    series = name_series(results)
    if not any(cost_rows(s, cost) for s in series):
        raise FeelgoodError(f"no {cost} are recorded here: use another cost.")
    return panels(results, lambda s, style: compute_panel(s, style, cost))


def cost_rows(series: Series, cost: Cost) -> Rows:
    """One row with cost and regret, or none where either is not known."""
    spent = getattr(compute_of(series.result), cost)
    estimate = regret_interval(series.result)
    if spent is None or not spent > 0 or not estimate.value > 0:
        return []
    low, high = (e if math.isfinite(e) else estimate.value for e in (estimate.low, estimate.high))
    return [
        {
            "series": series.label,
            "cost": figures(spent),
            "mean": figures(estimate.value),
            "low": figures(max(low, estimate.value / 10)),
            "high": figures(high),
        }
    ]


def compute_panel(series: Sequence[Series], style: Style, cost: Cost) -> alt.LayerChart:
    """One testbed's costs and regrets."""
    rows = [row for s in series for row in cost_rows(s, cost)]
    base = style.data(rows)
    log = alt.Scale(type="log", nice=False, padding=16)
    x = alt.X("cost:Q", title=COSTS[cost], scale=log, axis=number_axis(form="~s"))
    title = "mean final regret, logarithmic"
    axis = number_axis([row["mean"] for row in rows])
    rules = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x, y=alt.Y("low:Q", title=title, scale=log), y2="high:Q", color=style.colour(line=False)
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=alt.Y("mean:Q", title=title, scale=log, axis=axis),
        color=style.colour(line=False),
        shape=style.shape(),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("cost:Q", title=cost, format=",.4~g"),
            alt.Tooltip("mean:Q", title="mean final regret", format=",.4~g"),
        ],
    )
    return style.panel(rules, dots)
