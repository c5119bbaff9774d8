"""How the samplers did along the run, and how many independent draws theirs are worth."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.numbers import rounded
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import column_means, thin
from feelgood.report.axes import label_axis, number_axis, wide
from feelgood.report.chart_kinds import (
    ChartKind,
    PageChart,
    PageProblem,
    Section,
    measure_buttons,
    register_chart,
)
from feelgood.report.charting import alt
from feelgood.report.rendering import Chart, ChartRows
from feelgood.report.series import Series, name_series, ordered_labels
from feelgood.report.style import Style, side_by_side

#: What samplers record, and how charts call it.
HEALTH_MEASURES = {
    "ess": "effective sample size of 200 draws",
    "acceptance": "acceptance probability",
    "gradients": "gradient evaluations per round",
    "step": "step size",
    "divergences": "divergent proposals per round",
}


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
                title=f"{problem}: {HEALTH_MEASURES.get(name, name)}"
            )
            for problem in problems
            for name in chosen
        ]
    )


def health_measures(series: Sequence[Series]) -> list[str]:
    """What the samplers recorded, in the order of `HEALTH_MEASURES`, others after."""
    found = {name for s in series for name in s.result.health}
    if any(np.isfinite(s.result.ess).any() for s in series):
        found.add("ess")
    order = list(HEALTH_MEASURES)
    return sorted(found, key=lambda n: (order.index(n) if n in order else len(order), n))


def health_panel(series: Sequence[Series], style: Style, measure: str) -> alt.LayerChart:
    """One measure on one testbed: means over seeds along the run; ESS as bars, at its end."""
    title = HEALTH_MEASURES.get(measure, measure)
    if measure == "ess":
        return _ess_panel(series, style, title)
    rows = style.rows(f"health {measure}", lambda: _rows(series, style.points, measure))
    seen = [row["mean"] for row in rows]
    log = measure == "step" and wide(seen)
    scale = style.values(log)
    share = measure == "acceptance" or not any(seen)
    if share:
        scale = alt.Scale(domain=[0, 1])
    x = alt.X("round:Q", title="round", scale=alt.Scale(nice=False), axis=number_axis())
    axis = number_axis(seen if log else [])
    y = alt.Y("mean:Q", title=f"{title} (mean over seeds)", scale=scale, axis=axis)
    base = style.data(f"health {measure}", rows)
    lines = base.mark_line(strokeWidth=2, clip=style.switch).encode(
        x=x, y=y, color=style.colour(), strokeDash=style.dash(), opacity=style.brought_out()
    )
    dots = (
        style.inside(base, "mean")
        .mark_point(filled=True, size=40, opacity=0)
        .encode(
            x=x,
            y=y,
            color=style.colour(),
            tooltip=[
                alt.Tooltip("series:N", title="agent"),
                alt.Tooltip("round:Q", format=",d"),
                alt.Tooltip("mean:Q", title=title, format=".4~g"),
            ],
        )
    )
    fields: dict[str, Any] = {"value": "mean", "along": "round", "log": log, "zero": True}
    if share:
        fields["ends"] = [0, 1]
    return style.panel(lines, *style.line_ends("round"), dots, values=fields)


def _rows(series: Sequence[Series], points: int, measure: str) -> ChartRows:
    """Means over seeds along the run."""
    rows: ChartRows = []
    for s in series:
        values = s.result.health.get(measure)
        if values is None:
            continue
        kept = thin(len(s.result.curve_rounds), points // 2)
        means = column_means(values[:, kept])
        rows += [
            {"series": s.label, "round": int(s.result.curve_rounds[k]), "mean": rounded(m)}
            for k, m in zip(kept, means, strict=True)
            if math.isfinite(m)
        ]
    return rows


def _ess_panel(series: Sequence[Series], style: Style, title: str) -> alt.LayerChart:
    rows = style.rows("ess", lambda: _ess_rows(series))
    x_title = f"{title} (median, 10 to 90 % of seeds)"
    y = alt.Y(
        "series:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=label_axis()
    )
    base = style.data("ess", rows)
    rules = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q", title=x_title), x2="high:Q", y=y, color=style.plain_colour()
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("middle:Q", title=x_title, scale=alt.Scale(zero=True), axis=number_axis()),
        y=y,
        color=style.plain_colour(),
        tooltip=[
            alt.Tooltip("series:N", title="agent"),
            alt.Tooltip("middle:Q", title="median", format=".4~g"),
            alt.Tooltip("low:Q", title="10 %", format=".4~g"),
            alt.Tooltip("high:Q", title="90 %", format=".4~g"),
        ],
    )
    return style.panel(rules, dots, height=alt.Step(24))


def _ess_rows(series: Sequence[Series]) -> ChartRows:
    """Median and spread over seeds, the largest first."""
    rows: ChartRows = []
    for s in series:
        finite = s.result.ess[np.isfinite(s.result.ess)]
        if len(finite):
            low, middle, high = np.quantile(finite, [0.1, 0.5, 0.9])
            rows.append(
                {
                    "series": s.label,
                    "middle": rounded(middle),
                    "low": rounded(low),
                    "high": rounded(high),
                }
            )
    rows.sort(key=lambda row: -row["middle"])
    return [{**row, "order": order} for order, row in enumerate(rows)]


def _on_page(problem: PageProblem) -> list[PageChart]:
    found = health_measures(problem.series)
    variants = {name: health_panel(problem.series, problem.style, name) for name in found}
    return [PageChart(f"Sampler health on {problem.name}", variants)] if variants else []


register_chart(
    ChartKind(
        name="health",
        section=Section(
            "health",
            "Sampler health",
            "How the samplers did along the run, as means over seeds. The effective sample size "
            "says how many independent draws 200 repeated ones are worth at the end. Agents "
            "without a sampler have no line.",
            (measure_buttons({k: v[0].upper() + v[1:] for k, v in HEALTH_MEASURES.items()}),),
            place=50,
        ),
        draw=sampler_health,
        on_page=_on_page,
    )
)
