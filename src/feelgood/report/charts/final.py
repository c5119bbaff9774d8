"""Final regret: means with their intervals, and the seeds behind them."""

from collections.abc import Sequence

import numpy as np

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import DOTS, regret_interval, thin
from feelgood.report.axes import label_axis, number_axis
from feelgood.report.chart_kinds import (
    WHOLE_AXIS,
    ChartKind,
    PageChart,
    PageProblem,
    Section,
    register_chart,
)
from feelgood.report.charting import alt
from feelgood.report.rendering import Chart, ChartRows
from feelgood.report.series import Series, by_mean
from feelgood.report.style import EXITS, Style, panels


def final_intervals(results: Sequence[AgentResult], *, log_x: bool = False) -> Chart:
    """Mean final regret with its 95 % bootstrap interval, and the seeds behind it."""
    return panels(results, lambda s, style: final_panel(s, style, log_x))


def final_panel(series: Sequence[Series], style: Style, log_x: bool = False) -> alt.LayerChart:
    """One testbed's final regrets, the lowest mean on top."""
    ranked = sorted(series, key=by_mean)
    means = style.rows("final", lambda: _mean_rows(ranked))
    seeds = style.rows("seeds", lambda: _seed_rows(ranked))
    positive = "datum.{0} > 0" if log_x else "isValid(datum.{0})"
    y = alt.Y(
        "series:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis()
    )
    axis = number_axis([row["regret"] for row in seeds] if log_x else [])
    title = "final cumulative regret"
    scale = style.values(log_x, zero=False)
    x = alt.X("mean:Q", title=title, scale=scale, axis=axis)
    base = style.data("final", means).transform_filter(positive.format("low"))
    points = (
        style.data("seeds", seeds)
        .transform_filter(positive.format("regret"))
        .mark_circle(size=14, opacity=0.28, clip=style.switch)
        .encode(x=alt.X("regret:Q", title=title, scale=scale), y=y, color=style.plain_colour())
    )
    if style.switch:
        points = points.encode(
            tooltip=[
                alt.Tooltip("series:N", title="agent"),
                alt.Tooltip("regret:Q", title="regret of one seed", format=",.4~g"),
            ]
        )
    rules = base.mark_rule(strokeWidth=3, clip=style.switch).encode(
        x=alt.X("low:Q", title=title, scale=scale),
        x2="high:Q",
        y=y,
        color=style.plain_colour(),
        opacity=style.brought_out(),
    )
    dots = base.mark_point(filled=True, size=90, opacity=1, clip=style.switch).encode(
        x=x,
        y=y,
        color=style.plain_colour(),
        opacity=style.brought_out(),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("mean:Q", title="mean regret", format=",.4~g"),
            alt.Tooltip("low:Q", title="interval from", format=",.4~g"),
            alt.Tooltip("high:Q", title="to", format=",.4~g"),
            alt.Tooltip("seeds:Q", title="chains"),
            alt.Tooltip("diverged:Q", title="diverged"),
        ],
    )
    layers = [points, rules, dots]
    if style.switch:
        exits: alt.Chart = alt.Chart(alt.NamedData(name=EXITS))
        layers.append(
            exits.mark_text(align="right", dx=-2, fontSize=12).encode(
                x=alt.XValue(alt.ExprRef("width")), y=y, text="text:N", color=style.plain_colour()
            )
        )
    fields = {"value": "mean", "low": "low", "high": "high", "log": log_x, "zero": False}
    return style.panel(*layers, height=alt.Step(24), values=fields)


def _mean_rows(ranked: Sequence[Series]) -> ChartRows:
    """One row per series: its mean with the interval."""
    rows: ChartRows = []
    for order, s in enumerate(ranked):
        estimate = regret_interval(s.result)
        if estimate.count == 0:
            continue
        rows.append(
            {
                "series": s.label,
                "order": order,
                "mean": rounded(estimate.value),
                "low": rounded(estimate.low if estimate.count > 1 else estimate.value),
                "high": rounded(estimate.high if estimate.count > 1 else estimate.value),
                "seeds": estimate.count,
                "diverged": estimate.dropped,
            }
        )
    return rows


def _seed_rows(ranked: Sequence[Series]) -> ChartRows:
    """The regrets of some of the seeds of every series."""
    rows: ChartRows = []
    for order, s in enumerate(ranked):
        finite = np.sort(s.result.final_regret[np.isfinite(s.result.final_regret)])
        rows += [
            {"series": s.label, "order": order, "regret": rounded(v)}
            for v in finite[thin(len(finite), DOTS)]
        ]
    return rows


def _on_page(problem: PageProblem) -> list[PageChart]:
    variants = {
        key: final_panel(problem.series, problem.style, log_x=key == "x") for key in ("", "x")
    }
    return [PageChart(f"Final regret on {problem.name}", variants)]


register_chart(
    ChartKind(
        name="final",
        section=Section(
            "final",
            "Final regret",
            "Mean over seeds with a 95 % bootstrap interval, and single seeds behind it.",
            ({"name": "x", "label": "Log regret"}, WHOLE_AXIS),
            place=20,
        ),
        draw=final_intervals,
        on_page=_on_page,
    )
)
