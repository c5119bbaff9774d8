"""Mean cumulative regret along the run, with a band over seeds."""

from collections.abc import Sequence
from typing import Literal

import altair as alt
import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.report.drawing import (
    PICKS,
    Chart,
    Rows,
    Style,
    column_means,
    column_quantiles,
    figures,
    highlight,
    near_tooltip,
    number_axis,
    panels,
    std_of,
    thin,
    value_scale,
)
from feelgood.report.series import Series, one_curve

Band = Literal["quantile", "std"]


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
    bands = "10 to 90 % of seeds" if band == "quantile" else "mean ± std"
    areas = (
        style.bands(base)
        .mark_area(opacity=0.15 if style.switch else 0.1, interpolate="monotone", clip=style.switch)
        .encode(x=x, y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q", color=style.colour())
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
        style.inside(base.transform_filter("datum.pick"), "mean")
        .mark_point(filled=True, size=70)
        .encode(
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
        .add_params(hover)
    )
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


def _rows(series: Sequence[Series], points: int, band: Band) -> Rows:
    """The rows of all curves; agents with one curve say so."""
    names = {label: " = ".join(same) for same in one_curve(series) for label in same}
    return [
        {**row, "agent": names.get(s.label, s.label)}
        for s in series
        for row in curve_rows(s, points, band)
    ]


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
