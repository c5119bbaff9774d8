"""Final regret against what a chain cost."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import regret_interval
from feelgood.report.axes import number_axis
from feelgood.report.chain_costs import chain_cost
from feelgood.report.chart_kinds import ChartKind, PageChart, PageProblem, Section, register_chart
from feelgood.report.charting import alt
from feelgood.report.rendering import Chart, ChartRows
from feelgood.report.series import Series, name_series
from feelgood.report.style import Style, panels

CostName = Literal["gradients", "seconds"]
COST_AXES: Mapping[CostName, str] = {
    "gradients": "gradient evaluations per chain, logarithmic",
    "seconds": "seconds per chain (its share of the run), logarithmic",
}


def regret_against_compute(results: Sequence[AgentResult], cost: CostName = "gradients") -> Chart:
    """Mean final regret against what a chain cost: lower left is better."""
    series = name_series(results)
    if not any(cost_rows(s, cost) for s in series):
        raise FeelgoodError(f"no {cost} are recorded here: use another cost.")
    return panels(results, lambda s, style: compute_panel(s, style, cost))


def cost_rows(series: Series, cost: CostName) -> ChartRows:
    """One row with cost and regret, or none where either is not known."""
    spent = getattr(chain_cost(series.result), cost)
    estimate = regret_interval(series.result)
    if spent is None or not spent > 0 or not estimate.value > 0:
        return []
    low, high = (e if math.isfinite(e) else estimate.value for e in (estimate.low, estimate.high))
    return [
        {
            "series": series.label,
            "cost": rounded(spent),
            "mean": rounded(estimate.value),
            "low": rounded(max(low, estimate.value / 10)),
            "high": rounded(high),
        }
    ]


def compute_panel(series: Sequence[Series], style: Style, cost: CostName) -> alt.LayerChart:
    """One testbed's costs and regrets."""
    name = f"compute {cost}"
    rows = style.rows(name, lambda: [row for s in series for row in cost_rows(s, cost)])
    base = style.data(name, rows)
    log = alt.Scale(type="log", nice=False, padding=16)
    x = alt.X("cost:Q", title=COST_AXES[cost], scale=log, axis=number_axis(form="~s"))
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


def _on_page(problem: PageProblem) -> list[PageChart]:
    variants: dict[str, Chart] = {
        cost: compute_panel(problem.series, problem.style, cost)
        for cost in COST_AXES
        if any(cost_rows(s, cost) for s in problem.series)
    }
    return [PageChart(f"Regret against compute on {problem.name}", variants)] if variants else []


register_chart(
    ChartKind(
        name="compute",
        section=Section(
            "compute",
            "Regret against compute",
            "Mean final regret against the cost of one chain: lower left is better. Agents with a "
            "closed form evaluate no gradients.",
            (
                {
                    "name": "cost",
                    "label": "Cost",
                    "options": [
                        {"key": "gradients", "label": "Gradient evaluations"},
                        {"key": "seconds", "label": "Seconds"},
                    ],
                },
            ),
            place=80,
        ),
        draw=regret_against_compute,
        on_page=_on_page,
    )
)
