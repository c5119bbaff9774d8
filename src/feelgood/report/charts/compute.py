"""Final regret against what a chain cost."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import altair as alt

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report.chain_costs import chain_cost
from feelgood.report.drawing import (
    Chart,
    Rows,
    Style,
    figures,
    number_axis,
    panels,
    regret_interval,
)
from feelgood.report.series import Series, name_series

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
    spent = getattr(chain_cost(series.result), cost)
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
    name = f"compute {cost}"
    rows = style.rows(name, lambda: [row for s in series for row in cost_rows(s, cost)])
    base = style.data(name, rows)
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
