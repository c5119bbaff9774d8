"""A measure of the posterior along the run, with what exact draws would show."""

from collections.abc import Sequence

import numpy as np

from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.posterior.measure_rows import DISTANCES
from feelgood.report.aggregates import column_means, column_quantiles
from feelgood.report.axes import number_axis
from feelgood.report.chart_kinds import (
    ALL_BANDS,
    WHOLE_AXIS,
    ChartKind,
    PageChart,
    PageProblem,
    Section,
    measure_buttons,
    register_chart,
)
from feelgood.report.charting import alt
from feelgood.report.posterior_errors import (
    ERROR_AXES,
    ERROR_BUTTONS,
    measured,
    measured_along,
    measured_results,
)
from feelgood.report.rendering import Chart, ChartRows
from feelgood.report.series import Series
from feelgood.report.style import Style, panels


def posterior_along(results: Sequence[AgentResult], measure: str = "choice") -> Chart:
    """A measure of the posterior along the run, mean over seeds."""
    return panels(
        measured_results(results, measure), lambda s, style: along_panel(s, style, measure)
    )


def along_panel(series: Sequence[Series], style: Style, measure: str) -> alt.LayerChart:
    """One testbed: means over seeds, bands of seeds, and what exact draws would show, dashed."""
    name = f"along {measure}"
    rows = style.rows(
        name, lambda: [row for s in measured(series) for row in along_rows(s, measure)]
    )
    base = style.data(name, rows)
    title = ERROR_AXES[measure]
    x = alt.X("round:Q", title="round", scale=alt.Scale(nice=False, zero=True), axis=number_axis())
    y_scale = style.values(zero=measure in DISTANCES)

    def y(field: str) -> alt.Y:
        return alt.Y(field, title=title, scale=y_scale, axis=number_axis())

    clip = style.switch
    areas = (
        style.bands(base)
        .mark_area(opacity=0.15 if style.switch else 0.1, clip=clip)
        .encode(x=x, y=y("low:Q"), y2="high:Q", color=style.colour())
    )
    exact = base.mark_line(strokeWidth=1.5, strokeDash=[2, 3], clip=clip).encode(
        x=x, y=y("expected:Q"), color=style.colour(), opacity=style.brought_out(0.7)
    )
    lines = base.mark_line(strokeWidth=2, clip=clip).encode(
        x=x,
        y=y("mean:Q"),
        color=style.colour(),
        strokeDash=style.dash(),
        opacity=style.brought_out(),
    )
    dots = base.mark_point(filled=True, size=36, opacity=1, clip=clip).encode(
        x=x,
        y=y("mean:Q"),
        color=style.colour(),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("round:Q", format=",d"),
            alt.Tooltip("mean:Q", title=title, format=".4~g"),
            alt.Tooltip("error:Q", title="Monte Carlo error", format=".2~g"),
            alt.Tooltip("expected:Q", title="exact draws", format=".4~g"),
            alt.Tooltip("seeds:Q", title="chains"),
        ],
    )
    fields = {"value": "mean", "low": "low", "high": "high", "also": "expected", "along": "round"}
    return style.panel(
        areas,
        exact,
        lines,
        *style.line_ends("round"),
        dots,
        values={**fields, "log": False, "zero": measure in DISTANCES},
    )


def along_rows(series: Series, measure: str) -> ChartRows:
    """Mean, 10 to 90 % of the seeds, Monte Carlo error of the mean, and the exact draws' mean."""
    along = measured_along(series)
    values, errors = along.value[measure], along.error[measure]
    alive = np.isfinite(values).sum(axis=0)
    low, high = column_quantiles(values, (0.1, 0.9))
    means, expected = column_means(values), column_means(along.expected[measure])
    noise = np.sqrt(column_means(errors**2) / np.maximum(alive, 1))
    return [
        {
            "series": series.label,
            "round": int(t),
            "mean": rounded(means[i]),
            "low": rounded(low[i]),
            "high": rounded(high[i]),
            "error": rounded(noise[i], 3),
            "expected": rounded(expected[i]),
            "seeds": int(alive[i]),
        }
        for i, t in enumerate(along.rounds)
        if alive[i]
    ]


def _on_page(problem: PageProblem) -> list[PageChart]:
    if not measured(problem.series):
        return []
    variants = {name: along_panel(problem.series, problem.style, name) for name in ERROR_BUTTONS}
    return [PageChart(f"Posterior error on {problem.name}", variants, "Along the run")]


POSTERIOR_SECTION = Section(
    "posterior",
    "Posterior error and regret",
    "How far the agents' draws are from their exact posteriors, measured along the run. Lines are "
    "means over seeds; dashed lines are what as many exact draws would show. Point at a line for "
    "the band that holds 10 to 90 % of the seeds. The second chart shows the mean final regret "
    "against the error along the run, with 95 % bootstrap intervals.",
    (measure_buttons(ERROR_BUTTONS), ALL_BANDS, WHOLE_AXIS),
    place=60,
)
register_chart(
    ChartKind(name="posterior", section=POSTERIOR_SECTION, draw=posterior_along, on_page=_on_page)
)
