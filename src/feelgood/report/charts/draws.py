"""The paper's figure of posteriors: exact and sampled draws of every arm, one row per agent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError
from feelgood.posterior.analysis_results import AgentPosterior, Analysis
from feelgood.posterior.measure_rows import measured_text
from feelgood.report.chart_kinds import (
    ChartKind,
    PageChart,
    PageTable,
    Section,
    register_chart,
)
from feelgood.report.charting import alt
from feelgood.report.rendering import ChartRows, as_table
from feelgood.report.style import SHOWN_SERIES

#: Draws of each kind that a panel shows, and points of an ellipse.
SHOWN_DRAWS, ELLIPSE = 200, 61
#: −2 ln(1 − 0.9): the squared radius that holds 90 % of a normal law in the plane.
RADIUS = 4.605170
EXACT, SAMPLED, OWN = "exact posterior", "sampled", "exact own target"


def posterior_figure(
    results: Sequence[AgentPosterior],
    points: int = SHOWN_DRAWS,
    size: int = 105,
    switch: bool = False,
) -> alt.FacetChart:
    """Exact and sampled draws in the plane of the first two coordinates, with 90 % ellipses.

    One row per agent (of the first data set), one column per arm. Ellipses are those of the normal
    laws with the moments of each; an agent with another target of its own has a third, dashed. With
    `switch` the page's buttons choose the rows.
    """
    if not results:
        raise FeelgoodError("there are no posteriors to draw: give at least one.")
    first = {r.agent: r for r in reversed(results)}
    shown = [first[name] for name in dict.fromkeys(r.agent for r in results)]
    if shown[0].draws.shape[-1] < 2:
        raise FeelgoodError("a plane needs contexts of at least 2 dimensions: these have 1.")
    rows: ChartRows = []
    for result in shown:
        for arm in range(result.draws.shape[2]):
            rows += _panel(result, arm, points)
    kinds = [kind for kind in (EXACT, SAMPLED, OWN) if any(r["law"] == kind for r in rows)]
    legend = alt.Legend(orient="top", symbolOpacity=1, symbolSize=80)
    colours = alt.Color("law:N", title=None, scale=alt.Scale(domain=kinds), legend=legend)
    # The page says in words what the axes are: it has less room.
    titles = (None, None) if switch else ("θ₁", "θ₂")
    base = alt.Chart().encode(
        x=alt.X("x:Q", title=titles[0], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=3)),
        y=alt.Y("y:Q", title=titles[1], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=3)),
        color=colours,
    )
    dots = base.transform_filter("datum.order < 0").mark_circle(size=5, opacity=0.35)
    dashes = alt.StrokeDash(
        "law:N",
        title=None,
        legend=legend,
        scale=alt.Scale(domain=kinds, range=[[1, 0], [1, 0], [3, 2]][: len(kinds)]),
    )
    ellipses = (
        base.transform_filter("datum.order >= 0")
        .mark_line(strokeWidth=1.5)
        .encode(order="order:Q", strokeDash=dashes)
    )
    panels = alt.layer(dots, ellipses, data=as_table(rows))
    agents = [result.agent for result in shown]
    chart = (
        panels.properties(width=size, height=size)
        .facet(
            row=alt.Row("series:N", title=None, sort=agents),
            column=alt.Column(
                "arm:O", title=None, header=alt.Header(labelExpr="'arm ' + datum.value")
            ),
        )
        .resolve_scale(x="independent", y="independent")
    )
    if switch:
        chart = chart.transform_filter(f"indexof({SHOWN_SERIES}, datum.series) >= 0")
        chart = chart.add_params(alt.param(name=SHOWN_SERIES, value=agents))
    return chart


def _panel(result: AgentPosterior, arm: int, points: int) -> ChartRows:
    """The rows of one panel: draws (order −1) and ellipses (order 0, 1, …)."""
    generator = np.random.default_rng([result.seed, arm])
    sampled = result.draws[:, :, arm, :2].reshape(-1, 2)
    exact = result.laws["posterior"]
    clouds = {
        EXACT: exact.sample(generator, points)[:, arm, :2],
        SAMPLED: sampled[generator.permutation(len(sampled))[:points]],
    }
    moments = {
        EXACT: (exact.mean[arm, :2], exact.covariance[arm, :2, :2]),
        SAMPLED: (sampled.mean(axis=0), np.cov(sampled.T)),
    }
    if "target" in result.laws:
        own = result.laws["target"]
        moments[OWN] = (own.mean[arm, :2], own.covariance[arm, :2, :2])
    label: dict[str, Any] = {"series": result.agent, "arm": arm}
    out = [
        {**label, "law": law, "x": round(float(x), 5), "y": round(float(y), 5), "order": -1}
        for law, cloud in clouds.items()
        for x, y in cloud
    ]
    for law, (mean, covariance) in moments.items():
        for order, (x, y) in enumerate(ellipse(mean, covariance)):
            point = {"x": round(float(x), 5), "y": round(float(y), 5), "order": order}
            out.append({**label, "law": law, **point})
    return out


def ellipse(
    mean: Float[np.ndarray, "2"], covariance: Float[np.ndarray, "2 2"]
) -> Float[np.ndarray, "points 2"]:
    """The edge of the set that holds 90 % of a normal law in the plane."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    angles = np.linspace(0.0, 2.0 * np.pi, ELLIPSE)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return mean + np.sqrt(RADIUS) * circle @ root.T


#: Columns of an analysis' table: the measures, what is above them, and their digits.
ANALYSED = {
    "bias": ("bias (sd)", 3),
    "trace": ("variance", 3),
    "cover90": ("in 90 %", 3),
    "choice": ("arm choice", 4),
    "ess": ("ESS", 0),
    "rhat": ("R̂", 3),
}


def analysis_name(analysis: Analysis) -> str:
    """An analysis as the page calls it."""
    data = "one run for all" if analysis.mode == "same" else "own runs"
    return f"posteriors on {analysis.testbed}, {analysis.rounds:,} rounds, {data}"


def _on_page(analysis: Analysis) -> list[PageChart | PageTable]:
    """The paper's figure and the numbers behind it."""
    figure = posterior_figure(analysis.agents, switch=True)
    rows = []
    for a in analysis.agents:
        for against, comparison in a.comparisons.items():
            found = {r.measure: r for r in comparison.rows if r.arm is None}
            cells = [
                measured_text(found[m], digits, thousands=",") if m in found else "–"
                for m, (_, digits) in ANALYSED.items()
            ]
            rows.append((a.agent, str(a.seed), against, *cells, comparison.verdict.status))
    return [
        PageChart(f"Exact and sampled draws, {analysis_name(analysis)}", {"": figure}),
        PageTable(
            "All arms together, ± Monte Carlo error. After a distance, in brackets: the distance "
            "that exact draws show",
            ("agent", "seed", "against", *(title for title, _ in ANALYSED.values()), "verdict"),
            rows,
        ),
    ]


register_chart(
    ChartKind(
        name="draws",
        section=Section(
            "draws",
            "Exact and sampled draws",
            "Draws of the exact posterior and of the agent: every arm's first coordinate to the "
            "right, its second upwards. Ellipses hold 90 % of the normal laws with the same "
            "moments. The dashed one is that of the agent's own target, where this is another "
            "law.",
            place=70,
        ),
        draw=posterior_figure,
        on_page=_on_page,
        reads="analysis",
    )
)
