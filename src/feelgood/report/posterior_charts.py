"""The paper's figure of posteriors: exact and sampled draws of every arm, one row an agent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError
from feelgood.posterior.analysis_results import AgentPosterior
from feelgood.report.drawing import (
    FORMATS,
    SHOWN,
    Rows,
    as_table,
    render,
    theme_config,
    to_spec,
    vega_lite_version,
)

#: Draws of each kind that a panel shows, and points of an ellipse.
POINTS, ELLIPSE = 200, 61
#: −2 ln(1 − 0.9): the squared radius that holds 90 % of a normal law in the plane.
RADIUS = 4.605170
EXACT, SAMPLED, OWN = "exact posterior", "sampled", "exact own target"
FIGURE_FORMATS = (*FORMATS, "html")


def posterior_figure(
    results: Sequence[AgentPosterior],
    points: int = POINTS,
    size: int = 105,
    switch: bool = False,
) -> alt.FacetChart:
    """Exact and sampled draws in the plane of the first two coordinates, with 90 % ellipses.

    One row an agent (of the first data set), one column an arm. Ellipses are those of the normal
    laws with the moments of each; an agent with another target of its own has a third, dashed. With
    `switch` the page's buttons choose the rows.
    """
    if not results:
        raise FeelgoodError("there are no posteriors to draw: give at least one.")
    first = {r.agent: r for r in reversed(results)}
    shown = [first[name] for name in dict.fromkeys(r.agent for r in results)]
    if shown[0].draws.shape[-1] < 2:
        raise FeelgoodError("a plane needs contexts of at least 2 dimensions: this has 1.")
    rows: Rows = []
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
        chart = chart.transform_filter(f"indexof({SHOWN}, datum.series) >= 0")
        chart = chart.add_params(alt.param(name=SHOWN, value=agents))
    return chart


def _panel(result: AgentPosterior, arm: int, points: int) -> Rows:
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


def render_figure(chart: alt.FacetChart, path: Path) -> bytes:
    """The figure as the suffix of `path` says: PNG, SVG, PDF or one HTML page."""
    kind = path.suffix.removeprefix(".").lower()
    if kind == "html":
        import vl_convert

        spec = {**to_spec(chart), "config": theme_config()}
        page: str = vl_convert.vegalite_to_html(spec, vl_version=vega_lite_version(), bundle=True)
        return page.encode()
    check_format(path)
    return render(chart, kind)


def check_format(path: Path) -> None:
    """Refuse a file whose suffix names no format."""
    if path.suffix.removeprefix(".").lower() not in FIGURE_FORMATS:
        raise FeelgoodError(
            f"figures cannot be written as '{path.name}': end the name in one of "
            f"{', '.join('.' + kind for kind in FIGURE_FORMATS)}."
        )
