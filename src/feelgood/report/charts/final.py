"""Final regret: means with their intervals, and the seeds behind them."""

from collections.abc import Sequence

import altair as alt
import numpy as np

from feelgood.report.drawing import (
    DOTS,
    Chart,
    Rows,
    Style,
    by_mean,
    figures,
    label_axis,
    number_axis,
    panels,
    plain_colour,
    regret_interval,
    thin,
    value_scale,
)
from feelgood.report.series import Series
from feelgood.results import AgentResult


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
