"""Altair charts of results, one function a chart.

One definition serves the page, notebooks and files: `save` writes PNG, SVG or PDF. Everything is
aggregated here; a chart holds means, bands and intervals, and at most `DOTS` seeds of a result.

The functions on lists of `AgentResult` draw one panel for every testbed. Each rests on a function
that draws one panel (`…_panel`), which the page uses with its own `Style`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import altair as alt
import numpy as np
import pyarrow as pa
from jaxtyping import Float

from feelgood.errors import FeelgoodError, did_you_mean
from feelgood.metrics import Summary
from feelgood.report.series import Series, Sweep, find_sweeps, name_series, ordered_labels
from feelgood.report.series import show_value as show
from feelgood.report.tables import Comparison
from feelgood.results import AgentResult
from feelgood.statistics import Estimate, bootstrap, compute_of

Rows = list[dict[str, Any]]
Chart = alt.LayerChart | alt.Chart | alt.ConcatChart | alt.FacetChart
Band = Literal["quantile", "std"]

#: Colours that stay apart for the three common kinds of colour blindness, on white and on black.
#: Past the last one they come again with another dash or shape.
PALETTES = {
    "light": (
        *("#0a4983", "#b12c08", "#21804a", "#d55fa5"),
        *("#0f9ae6", "#bd8805", "#704bd6", "#5f535d"),
    ),
    "dark": (
        *("#6ba1da", "#fa7b46", "#36d18f", "#bb6498"),
        *("#acd4fa", "#f3d344", "#9088f9", "#b8bdc1"),
    ),
}
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (10, 3, 2, 3), (4, 6))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
#: Text and lines of each theme; the page's style sheet uses the same.
INKS = {
    "light": {"text": "#1d2430", "soft": "#5b6473", "line": "#d9dee6", "paper": "#ffffff"},
    "dark": {"text": "#e8ecf2", "soft": "#a3adbb", "line": "#38414e", "paper": "#161b22"},
}
FONT = "system-ui, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"

#: Seeds of a result that are drawn as points, evenly picked from the sorted ones.
DOTS = 40
#: Points of a curve that are kept, and those the pointer can pick.
POINTS, PICKS = 120, 40
LEVEL = 0.95
#: The name of the signal that says which series are drawn.
SHOWN = "shown"

MEASURES = {
    "ess": "effective sample size of 200 draws",
    "acceptance": "acceptance probability",
    "gradients": "gradient evaluations a round",
    "step": "step size",
    "divergences": "divergent proposals a round",
}


@dataclasses.dataclass(frozen=True)
class Style:
    """How a panel is drawn: the order of colours, its size, and who switches series.

    With `switch` the page's own buttons do (through the signal `shown`), and there is no legend;
    else a click on the legend of a single panel brings a series out.
    """

    labels: tuple[str, ...]
    width: int | Literal["container"] = 560
    height: int = 340
    switch: bool = False
    points: int = POINTS
    #: Which panel of how many this is.
    panel_number: int = 0
    panel_count: int = 1

    def colour(self, title: str = "agent", line: bool = True) -> alt.Color:
        return alt.Color("series:N", title=title, scale=self._scale(), legend=self._legend(line))

    def dash(self, title: str = "agent") -> alt.StrokeDash:
        colours = len(PALETTES["light"])
        dashes = [
            list(DASHES[(i // colours) % len(DASHES)]) for i in range(max(len(self.labels), 1))
        ]
        scale = alt.Scale(domain=list(self.labels), range=dashes)
        return alt.StrokeDash("series:N", title=title, scale=scale, legend=self._legend())

    def shape(self, title: str = "agent") -> alt.Shape:
        colours = len(PALETTES["light"])
        shapes = [SHAPES[(i // colours) % len(SHAPES)] for i in range(max(len(self.labels), 1))]
        scale = alt.Scale(domain=list(self.labels), range=shapes)
        return alt.Shape("series:N", title=title, scale=scale, legend=self._legend(line=False))

    def _scale(self) -> alt.Scale:
        return alt.Scale(domain=list(self.labels))

    def _legend(self, line: bool = True) -> alt.Legend | None:
        if self.switch:
            return None
        if not line:
            return alt.Legend(symbolLimit=0, labelLimit=260, symbolOpacity=1)
        return alt.Legend(
            symbolLimit=0,
            labelLimit=260,
            symbolOpacity=1,
            symbolType="stroke",
            symbolSize=400,
            symbolStrokeWidth=2.5,
        )

    def data(self, rows: Rows) -> alt.Chart:
        """A chart on these rows of which only those of the shown series are drawn."""
        chart = alt.Chart(as_table(rows))
        return (
            chart.transform_filter(f"indexof({SHOWN}, datum.series) >= 0") if self.switch else chart
        )

    def panel(self, *layers: alt.Chart, height: int | alt.Step | None = None) -> alt.LayerChart:
        """The layers as one panel of this size."""
        panel = _layered(layers, self.width, height or self.height)
        if self.switch:
            panel = panel.add_params(alt.param(name=SHOWN, value=list(self.labels)))
        return panel


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
    x = alt.X("round:Q", title="round", scale=_scale(log_x, nice=False), axis=number_axis(rounds))
    title = "cumulative regret (sum of mean reward lost)"
    y = alt.Y("mean:Q", title=title, scale=_scale(log_y), axis=number_axis(means))
    highlight, opacity = _highlight(style)
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
    if highlight is not None:
        lines = lines.add_params(highlight)
    return style.panel(areas, lines, dots)


def curve_rows(series: Series, points: int, band: Band) -> Rows:
    """The mean and the band at `points` of the recorded rounds, the last among them."""
    r = series.result
    kept = _thin(len(r.curve_rounds), points)
    values = r.curve[:, kept]
    alive = np.isfinite(values).sum(axis=0)
    mean = column_means(values)
    if band == "std":
        spread = np.array([_std(column) for column in values.T])
        low, high = np.maximum(mean - spread, 0.0), mean + spread
    else:
        low, high = column_quantiles(values, (0.1, 0.9))
    picked = set(_thin(len(kept), PICKS).tolist())
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
        seeds += [name | {"regret": figures(v)} for v in finite[_thin(len(finite), DOTS)]]
    positive = "datum.{0} > 0" if log_x else "isValid(datum.{0})"
    y = alt.Y(
        "series:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=_label_axis()
    )
    axis = number_axis([row["regret"] for row in seeds] if log_x else [])
    title = "final cumulative regret"
    x = alt.X("mean:Q", title=title, scale=_scale(log_x, zero=False), axis=axis)
    base = style.data(means).transform_filter(positive.format("low"))
    points = (
        style.data(seeds)
        .transform_filter(positive.format("regret"))
        .mark_circle(size=14, opacity=0.28)
        .encode(x=alt.X("regret:Q", title=title), y=y, color=_plain_colour(style))
    )
    rules = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=title), x2="high:Q", y=y, color=_plain_colour(style)
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=y,
        color=_plain_colour(style),
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
    chart = _side_by_side([*maps, *lines])
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
    return _layered((tiles, frame.encode(x=x, y=y), numbers), width, alt.Step(34))


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
    return _layered((bars, lines, points), width, 260)


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
    y = alt.Y(
        "row:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=_label_axis()
    )
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
    return _layered((rules, points), width, alt.Step(13))


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
    return _side_by_side(
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
        kept = _thin(len(s.result.curve_rounds), style.points // 2)
        means = column_means(values[:, kept])
        rows += [
            {"series": s.label, "round": int(s.result.curve_rounds[k]), "mean": figures(m)}
            for k, m in zip(kept, means, strict=True)
            if math.isfinite(m)
        ]
    seen = [row["mean"] for row in rows]
    log = measure == "step" and _wide(seen)
    scale = _scale(log)
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
        "series:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=_label_axis()
    )
    base = style.data(rows)
    rules = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q", title=x_title), x2="high:Q", y=y, color=_plain_colour(style)
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("middle:Q", title=x_title, scale=alt.Scale(zero=True), axis=number_axis()),
        y=y,
        color=_plain_colour(style),
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


# Files ---------------------------------------------------------------------------------------


def theme_config(theme: Literal["light", "dark"] = "light") -> dict[str, Any]:
    """Vega-Lite's `config` for a theme: fonts, quiet axes, the palette."""
    ink = INKS[theme]
    return {
        "background": ink["paper"],
        "font": FONT,
        "view": {"stroke": None},
        "range": {"category": list(PALETTES[theme])},
        "axis": {
            "labelColor": ink["soft"],
            "titleColor": ink["text"],
            "gridColor": ink["line"],
            "domainColor": ink["line"],
            "tickColor": ink["line"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "labelPadding": 6,
        },
        "legend": {
            "labelColor": ink["text"],
            "titleColor": ink["text"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
        },
        "header": {"labelColor": ink["text"], "titleColor": ink["text"], "labelFontSize": 12},
        "title": {"color": ink["text"], "fontSize": 13, "fontWeight": 600, "anchor": "start"},
    }


FORMATS = ("png", "svg", "pdf")


def render(
    chart: Chart, kind: str, theme: Literal["light", "dark"] = "light", scale: float = 2.0
) -> bytes:
    """The chart as PNG (`scale` pixels a point), SVG or PDF."""
    import vl_convert

    spec = to_spec(chart)
    spec["config"] = theme_config(theme)
    version = vega_lite_version()
    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec, vl_version=version).encode()
    if kind == "pdf":
        return vl_convert.vegalite_to_pdf(spec, vl_version=version)
    if kind == "png":
        return vl_convert.vegalite_to_png(spec, vl_version=version, scale=scale)
    raise FeelgoodError(f"charts cannot be written as '{kind}': use {', '.join(FORMATS)}.")


def vega_lite_version() -> str:
    """The Vega-Lite that Altair writes for, as vl-convert names it."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def save(chart: Chart, path: Path | str) -> None:
    """Write the chart; the suffix of the file says how."""
    path = Path(path)
    path.write_bytes(render(chart, path.suffix.removeprefix(".").lower()))


# What charts share ---------------------------------------------------------------------------


def as_table(rows: Rows) -> pa.Table:
    """Rows as a table: Altair checks rows of Python objects one by one, which takes seconds."""
    names = list(rows[0]) if rows else ["series"]
    columns = {}
    for name in names:
        column = pa.array([row[name] for row in rows])
        columns[name] = column.cast(pa.float64()) if pa.types.is_null(column.type) else column
    return pa.table(columns)


def to_spec(chart: Chart) -> dict[str, Any]:
    """The chart as Vega-Lite, its tables under `datasets`; without Altair's limit on rows."""
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict()
    return spec


def regret_interval(result: AgentResult) -> Estimate:
    """Mean final regret with its bootstrap interval; several charts show the same one."""
    return _interval(np.asarray(result.final_regret, np.float64).tobytes())


@functools.lru_cache(maxsize=4096)
def _interval(values: bytes) -> Estimate:
    return bootstrap(np.frombuffer(values), level=LEVEL)


def figures(value: float, digits: int = 5) -> float | None:
    """The value to a few significant digits; None where it is not finite."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def panels(
    results: Sequence[AgentResult],
    draw: Callable[[Sequence[Series], Style], alt.LayerChart],
    title: Callable[[Sequence[Series]], str | list[str]] = lambda series: series[0].problem,
) -> Chart:
    """One panel a problem, with common colours."""
    if not results:
        raise FeelgoodError("there are no results to draw: give at least one.")
    series = name_series(results)
    problems = list(dict.fromkeys(s.problem for s in series))
    style = Style(labels=tuple(ordered_labels(series)))
    drawn = []
    for number, problem in enumerate(problems):
        own = [s for s in series if s.problem == problem]
        place = dataclasses.replace(style, panel_number=number, panel_count=len(problems))
        drawn.append(draw(own, place).properties(title=title(own)))
    return _side_by_side(drawn)


def _side_by_side(panels: Sequence[alt.LayerChart]) -> Chart:
    return panels[0] if len(panels) == 1 else alt.concat(*panels, columns=2)


def _layered(
    layers: Sequence[alt.Chart], width: int | Literal["container"], height: int | alt.Step
) -> alt.LayerChart:
    return cast(alt.LayerChart, alt.layer(*layers)).properties(width=width, height=height)


def _highlight(style: Style) -> tuple[alt.Parameter | None, Any]:
    """A click on the legend brings series out; the page has its own buttons.

    Vega-Lite cannot bind one legend to the panels of several testbeds: there it stays passive.
    """
    if style.switch or style.panel_count > 1:
        return None, alt.value(1)
    pick = alt.selection_point(fields=["series"], bind="legend")
    return pick, alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))


def _scale(log: bool, zero: bool = True, nice: bool = True) -> alt.Scale:
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=nice)


def number_axis(log_of: Sequence[float | int] = (), form: str = ",~r") -> alt.Axis:
    """A quiet axis; a logarithmic one of these values gets lines at 1, 2 and 5 only."""
    axis = alt.Axis(format=form, labelOverlap="greedy", tickCount=6)
    positive = [v for v in log_of if v > 0]
    if not positive or max(positive) < 10 * min(positive):
        return axis
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    steps = (1, 2, 5) if high - low <= 4 else (1,)
    axis.values = [k * 10.0**e for e in range(low, high + 1) for k in steps]
    return axis


def _label_axis() -> alt.Axis:
    return alt.Axis(labelLimit=240, grid=False, ticks=False, domain=False)


def _plain_colour(style: Style) -> alt.Color:
    """The series' colour without a legend, where the axis names the series."""
    return alt.Color("series:N", scale=alt.Scale(domain=list(style.labels)), legend=None)


def by_mean(series: Series) -> float:
    """A key to sort by: mean regret, results without one last."""
    mean = series.result.regret.mean
    return mean if math.isfinite(mean) else math.inf


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


def _thin(count: int, most: int) -> np.ndarray:
    """At most `most` of the indices 0 … count − 1, evenly, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, most))).astype(np.int64))


def _std(values: Float[np.ndarray, " seeds"]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else 0.0


def column_means(values: Float[np.ndarray, "seeds points"]) -> Float[np.ndarray, " points"]:
    """Means over the living chains; NaN where none is left."""
    alive = np.isfinite(values)
    count = alive.sum(axis=0)
    return np.where(
        count > 0, np.where(alive, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan
    )


def column_quantiles(
    values: Float[np.ndarray, "seeds points"], levels: Sequence[float]
) -> Float[np.ndarray, "levels points"]:
    """Quantiles over the living chains; NaN where none is left."""
    if np.isfinite(values).all():
        return np.quantile(values, levels, axis=0)
    finite = [column[np.isfinite(column)] for column in values.T]
    nothing = np.full(len(levels), np.nan)
    return np.stack([np.quantile(c, levels) if len(c) else nothing for c in finite], axis=1)
