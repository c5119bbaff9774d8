"""Mean cumulative regret along the run, with a band over seeds."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import PICKS, column_means, column_quantiles, std_of, thin
from feelgood.report.axes import near_tooltip, number_axis, value_scale
from feelgood.report.chart_kinds import (
    ALL_BANDS,
    WHOLE_AXIS,
    ChartKind,
    PageChart,
    PageProblem,
    Section,
    register_chart,
)
from feelgood.report.charting import alt
from feelgood.report.rendering import Chart, ChartRows
from feelgood.report.series import Series, one_curve
from feelgood.report.style import Style, highlight, panels

Band = Literal["quantile", "std"]
BAND_NAMES: tuple[str, ...] = get_args(Band)


def regret_curves(
    results: Sequence[AgentResult],
    *,
    log_x: bool = False,
    log_y: bool = False,
    band: Band = "quantile",
) -> Chart:
    """Mean cumulative regret along the run, with a band over seeds.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.charts.curves import regret_curves
    >>> result = feelgood.run("linear-20", ["linucb", "uniform"], rounds=50, seeds=2)
    >>> chart = regret_curves(result.results, log_y=True)
    >>> type(chart).__name__
    'LayerChart'
    """
    return panels(results, lambda s, style: curves_panel(s, style, log_x, log_y, band))


def curves_panel(
    series: Sequence[Series],
    style: Style,
    log_x: bool = False,
    log_y: bool = False,
    band: Band = "quantile",
) -> alt.LayerChart:
    """One testbed's regret curves."""
    rows = style.rows("curves", lambda: _rows(series, style.points, band))
    base = style.data("curves", rows)
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
    scale = style.values(log_y)
    y = alt.Y("mean:Q", title=title, scale=scale, axis=number_axis(means))
    pick, opacity = highlight(style)
    areas = (
        style.bands(base)
        .mark_area(opacity=0.15 if style.switch else 0.1, interpolate="monotone", clip=style.switch)
        .encode(x=x, y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q", color=style.colour())
    )
    lines = base.mark_line(strokeWidth=2, interpolate="monotone", clip=True).encode(
        x=x, y=y, color=style.colour(), strokeDash=style.dash(), opacity=opacity
    )
    dots = _dots(style.inside(base.transform_filter("datum.pick"), "mean"), style, x, y, band)
    if pick is not None:
        lines = lines.add_params(pick)
    fields = {"value": "mean", "low": "low", "high": "high", "along": "round"}
    return style.panel(
        areas,
        lines,
        *style.line_ends("round"),
        dots,
        values={**fields, "log": log_y, "log_along": log_x, "zero": True},
    )


def _dots(base: alt.Chart, style: Style, x: alt.X, y: alt.Y, band: Band) -> alt.Chart:
    """Points that the pointer picks, with their numbers."""
    bands = "10 to 90 % of seeds" if band == "quantile" else "mean ± std"
    hover = alt.selection_point(
        name=f"hover_{style.panel_number}",
        nearest=True,
        on="pointerover",
        clear="pointerout",
        empty=False,
    )
    dots = base.mark_point(filled=True, size=70).encode(
        x=x,
        y=y,
        color=style.colour(),
        opacity=alt.when(hover).then(alt.value(1)).otherwise(alt.value(0)),
        tooltip=near_tooltip(
            {
                "agent": "d.agent",
                "round": "format(d.round, ',d')",
                "mean regret": "format(d.mean, ',.4~g')",
                bands: "format(d.low, ',.4~g') + ' to ' + format(d.high, ',.4~g')",
                "chains": "d.seeds",
            }
        ),
    )
    return dots.add_params(hover)


def _rows(series: Sequence[Series], points: int, band: Band) -> ChartRows:
    """The rows of all curves; agents whose curves are equal are named together."""
    names = {label: " = ".join(same) for same in one_curve(series) for label in same}
    return [
        {**row, "agent": names.get(s.label, s.label)}
        for s in series
        for row in curve_rows(s, points, band)
    ]


def curve_rows(series: Series, points: int, band: Band) -> ChartRows:
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
            "mean": rounded(mean[i]),
            "low": rounded(low[i]),
            "high": rounded(high[i]),
            "seeds": int(alive[i]),
            "pick": int(i in picked),
        }
        for i in range(len(kept))
        if alive[i]
    ]


def _on_page(problem: PageProblem) -> list[PageChart]:
    variants = {
        key: curves_panel(problem.series, problem.style, log_x="x" in key, log_y="y" in key)
        for key in ("", "x", "y", "x+y")
    }
    return [PageChart(f"Regret along the run on {problem.name}", variants)]


register_chart(
    ChartKind(
        name="curves",
        section=Section(
            "curves",
            "Regret along the run",
            "Mean cumulative regret over seeds; lower is better. Every agent meets the same "
            "contexts and the same noise. Point at a curve for its numbers and for the band that "
            "holds 10 to 90 % of the seeds; click to keep it.",
            (
                {"name": "x", "label": "Log rounds"},
                {"name": "y", "label": "Log regret"},
                ALL_BANDS,
                WHOLE_AXIS,
            ),
            place=10,
        ),
        draw=regret_curves,
        on_page=_on_page,
    )
)
