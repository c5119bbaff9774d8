"""Final regret against posterior error, with their rank correlation."""

from collections.abc import Sequence

import numpy as np

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import CONFIDENCE, regret_interval
from feelgood.report.axes import number_axis
from feelgood.report.chart_kinds import (
    ChartKind,
    PageChart,
    PageProblem,
    PageTable,
    register_chart,
)
from feelgood.report.charting import alt
from feelgood.report.charts.posterior import POSTERIOR_SECTION
from feelgood.report.posterior_errors import (
    ERROR_BUTTONS,
    correlation,
    error_name,
    errors_of,
    measured,
    measured_results,
)
from feelgood.report.rendering import Chart, ChartRows
from feelgood.report.series import Series
from feelgood.report.style import Style, panels
from feelgood.stats.intervals import bootstrap


def regret_against_posterior(results: Sequence[AgentResult], measure: str = "choice") -> Chart:
    """Mean final regret against the posterior error along the run, with their rank correlation."""
    return panels(
        measured_results(results, measure),
        lambda s, style: against_panel(s, style, measure),
        lambda s: [s[0].problem, correlation(s, measure).sentence],
    )


def against_panel(series: Sequence[Series], style: Style, measure: str) -> alt.LayerChart:
    """One testbed: an agent is a point with 95 % intervals over seeds."""
    name = f"against {measure}"
    rows = style.rows(name, lambda: _against_rows(series, measure))
    base = style.data(name, rows)
    scale = alt.Scale(zero=False, padding=12)

    def x(field: str) -> alt.X:
        return alt.X(field, title=error_name(measure), scale=scale, axis=number_axis())

    def y(field: str) -> alt.Y:
        return alt.Y(field, title="mean final regret", scale=scale, axis=number_axis())

    colour = style.colour(line=False)
    across = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x("error_low:Q"), x2="error_high:Q", y=y("regret:Q"), color=colour
    )
    upright = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x("error:Q"), y=y("regret_low:Q"), y2="regret_high:Q", color=colour
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x("error:Q"),
        y=y("regret:Q"),
        color=colour,
        shape=style.shape(),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("error:Q", title=error_name(measure), format=".4~g"),
            alt.Tooltip("regret:Q", title="mean final regret", format=",.4~g"),
        ],
    )
    return style.panel(across, upright, dots)


def _against_rows(series: Sequence[Series], measure: str) -> ChartRows:
    """One row per series: error and regret with their intervals."""
    rows: ChartRows = []
    for s in measured(series):
        error, regret = (
            bootstrap(errors_of(s, measure), level=CONFIDENCE),
            regret_interval(s.result),
        )
        if not (error.count and regret.count):
            continue
        rows.append(
            {"series": s.label, "error": rounded(error.value), "regret": rounded(regret.value)}
            | {
                f"{name}_{end}": rounded(bound if np.isfinite(bound) else estimate.value)
                for name, estimate in (("error", error), ("regret", regret))
                for end, bound in (("low", estimate.low), ("high", estimate.high))
            }
        )
    return rows


def _on_page(problem: PageProblem) -> list[PageChart | PageTable]:
    if not measured(problem.series):
        return []
    found = {name: correlation(problem.series, name) for name in ERROR_BUTTONS}
    first = next(iter(found.values()))
    chart = PageChart(
        f"Regret against posterior error on {problem.name}",
        {name: against_panel(problem.series, problem.style, name) for name in ERROR_BUTTONS},
        "Regret against the error" + ("" if first.enough else f": {first.sentence}"),
    )
    if not first.enough:
        return [chart]
    interval = f"{100 * first.level:g} % interval"
    table = PageTable(
        f"Rank correlation of posterior error and final regret over {first.agents} agents; "
        "bootstrap intervals over agents and seeds",
        ("error of", f"Spearman, {interval}", f"Kendall, {interval}"),
        [(ERROR_BUTTONS[name], c.spearman_text, c.kendall_text) for name, c in found.items()],
    )
    return [chart, table]


register_chart(
    ChartKind(
        name="posterior-regret",
        section=POSTERIOR_SECTION,
        draw=regret_against_posterior,
        on_page=_on_page,
    )
)
