"""Charts of posteriors measured along runs: the error itself, and regret against it."""

from collections.abc import Sequence

import altair as alt
import numpy as np
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.engine.results import AgentResult, PosteriorAlong
from feelgood.report.drawing import (
    LEVEL,
    Chart,
    Rows,
    Style,
    column_means,
    column_quantiles,
    figures,
    number_axis,
    panels,
    regret_interval,
)
from feelgood.report.series import Series
from feelgood.stats.intervals import bootstrap
from feelgood.stats.rank_correlation import RankCorrelation, rank_correlation

#: Measures that can be drawn, the page's first ones first, and what their axes say.
MEASURES = {
    "choice": "arm choice: total variation",
    "trace": "variance ratio",
    "bias": "bias of the mean (standard deviations)",
    "wasserstein2": "squared 2-Wasserstein distance",
    "shape": "non-Gaussian part (sliced Wasserstein)",
    "cover90": "share inside the 90 % set",
    "ess": "effective number of 200 draws",
    "cover50": "share inside the 50 % set",
    "log_determinant": "log-determinant of the variance ratio",
    "largest": "variance ratio, widest direction",
    "smallest": "variance ratio, narrowest direction",
    "rhat": "split-R̂ over batches of draws",
}
#: Those that the page has buttons for, and what is on them.
BUTTONS = {
    "choice": "Arm choice",
    "trace": "Variance",
    "bias": "Bias",
    "wasserstein2": "Wasserstein",
    "shape": "Shape",
    "cover90": "Coverage 90 %",
    "ess": "Effective draws",
}
#: Measures that are positive even for exact draws: the excess over what those show is the error.
DISTANCES = ("choice", "bias", "wasserstein2", "shape")
#: Measures that are no error but are drawn as they are.
PLAIN = ("ess", "rhat")


def measured(series: Sequence[Series]) -> list[Series]:
    """Those whose posteriors were measured."""
    return [s for s in series if s.result.posterior is not None]


def posterior_along(results: Sequence[AgentResult], measure: str = "choice") -> Chart:
    """A measure of the posterior along the run, mean over seeds."""
    return panels(_those(results, measure), lambda s, style: along_panel(s, style, measure))


def regret_against_posterior(results: Sequence[AgentResult], measure: str = "choice") -> Chart:
    """Mean final regret against the posterior error along the run, with their rank correlation."""
    return panels(
        _those(results, measure),
        lambda s, style: against_panel(s, style, measure),
        lambda s: [s[0].problem, correlation(s, measure).sentence],
    )


def _those(results: Sequence[AgentResult], measure: str) -> list[AgentResult]:
    if measure not in MEASURES:
        raise FeelgoodError(f"unknown measure '{measure}': {did_you_mean(measure, MEASURES)}")
    found = [r for r in results if r.posterior is not None]
    if not found:
        raise FeelgoodError(
            "no posterior was measured here: run the study with --posterior-every N."
        )
    return found


def along_panel(series: Sequence[Series], style: Style, measure: str) -> alt.LayerChart:
    """One testbed: means over seeds, bands of seeds, and dashed what exact draws would show."""
    name = f"along {measure}"
    rows = style.rows(
        name, lambda: [row for s in measured(series) for row in along_rows(s, measure)]
    )
    base = style.data(name, rows)
    title = MEASURES[measure]
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


def along_rows(series: Series, measure: str) -> Rows:
    """Mean, 10 to 90 % of the seeds, Monte Carlo error of the mean, and the exact draws' mean."""
    along = _along(series)
    values, errors = along.value[measure], along.error[measure]
    alive = np.isfinite(values).sum(axis=0)
    low, high = column_quantiles(values, (0.1, 0.9))
    means, expected = column_means(values), column_means(along.expected[measure])
    noise = np.sqrt(column_means(errors**2) / np.maximum(alive, 1))
    return [
        {
            "series": series.label,
            "round": int(t),
            "mean": figures(means[i]),
            "low": figures(low[i]),
            "high": figures(high[i]),
            "error": figures(noise[i], 3),
            "expected": figures(expected[i]),
            "seeds": int(alive[i]),
        }
        for i, t in enumerate(along.rounds)
        if alive[i]
    ]


def errors_of(series: Series, measure: str) -> Float[np.ndarray, " seeds"]:
    """How wrong a chain's draws were, on average over the measured rounds.

    Of a distance, what is left of it beyond that of exact draws (squares add); of a ratio or a
    share, how far it is from that of exact draws.
    """
    along = _along(series)
    value, expected = along.value[measure], along.expected[measure]
    if measure in PLAIN:
        error = value
    elif measure == "wasserstein2":  # a square already
        error = np.maximum(value - expected, 0.0)
    elif measure in DISTANCES:
        error = np.sqrt(np.maximum(value**2 - expected**2, 0.0))
    else:
        error = np.abs(value - expected)
    return column_means(error.T)


def error_name(measure: str) -> str:
    """What `errors_of` is, for axes."""
    title = MEASURES[measure]
    if measure in PLAIN:
        return f"{title}, mean along the run"
    return f"{title}: error along the run"


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


def _against_rows(series: Sequence[Series], measure: str) -> Rows:
    """One row per series: error and regret with their intervals."""
    rows: Rows = []
    for s in measured(series):
        error, regret = bootstrap(errors_of(s, measure), level=LEVEL), regret_interval(s.result)
        if not (error.count and regret.count):
            continue
        rows.append(
            {"series": s.label, "error": figures(error.value), "regret": figures(regret.value)}
            | {
                f"{name}_{end}": figures(bound if np.isfinite(bound) else estimate.value)
                for name, estimate in (("error", error), ("regret", regret))
                for end, bound in (("low", estimate.low), ("high", estimate.high))
            }
        )
    return rows


def correlation(series: Sequence[Series], measure: str) -> RankCorrelation:
    """Of posterior error and final regret over the agents (and settings) of one problem."""
    kept = measured(series)
    common = sorted(set.intersection(*(set(s.result.seeds) for s in kept))) if kept else []
    places = [[s.result.seeds.index(seed) for seed in common] for s in kept]
    empty = np.empty((0, len(common)))
    pairs = list(zip(kept, places, strict=True))
    x = np.array([errors_of(s, measure)[place] for s, place in pairs]).reshape(len(kept), -1)
    y = np.array([s.result.final_regret[place] for s, place in pairs]).reshape(len(kept), -1)
    return rank_correlation(x, y) if common else rank_correlation(empty, empty)


def _along(series: Series) -> PosteriorAlong:
    assert series.result.posterior is not None, "only measured series are drawn"
    return series.result.posterior
