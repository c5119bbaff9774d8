"""How wrong draws were along a run, and how that goes with regret."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.engine.results import AgentResult, PosteriorAlong
from feelgood.posterior.measure_rows import DISTANCES
from feelgood.report.aggregates import column_means
from feelgood.report.series import Series
from feelgood.stats.rank_correlation import RankCorrelation, rank_correlation

#: Measures that can be drawn, and the titles of their axes; those with a button come first.
ERROR_AXES = {
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
ERROR_BUTTONS = {
    "choice": "Arm choice",
    "trace": "Variance",
    "bias": "Bias",
    "wasserstein2": "Wasserstein",
    "shape": "Shape",
    "cover90": "Coverage 90 %",
    "ess": "Effective draws",
}
#: Measures that are not errors; they are drawn as they are.
NO_ERRORS = ("ess", "rhat")


def measured(series: Sequence[Series]) -> list[Series]:
    """Those whose posteriors were measured."""
    return [s for s in series if s.result.posterior is not None]


def measured_results(results: Sequence[AgentResult], measure: str) -> list[AgentResult]:
    if measure not in ERROR_AXES:
        raise FeelgoodError(f"unknown measure '{measure}': {did_you_mean(measure, ERROR_AXES)}")
    found = [r for r in results if r.posterior is not None]
    if not found:
        raise FeelgoodError(
            "no posterior was measured here: run the study with --posterior-every N."
        )
    return found


def errors_of(series: Series, measure: str) -> Float[np.ndarray, " seeds"]:
    """How wrong a chain's draws were, on average over the measured rounds.

    For a distance: what it exceeds that of exact draws by (squares are subtracted). For a ratio or
    a share: how far it is from that of exact draws.
    """
    along = measured_along(series)
    value, expected = along.value[measure], along.expected[measure]
    if measure in NO_ERRORS:
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
    title = ERROR_AXES[measure]
    if measure in NO_ERRORS:
        return f"{title}, mean along the run"
    return f"{title}: error along the run"


def correlation(series: Sequence[Series], measure: str) -> RankCorrelation:
    """Correlation of posterior error and final regret over the agents and settings of a problem."""
    kept = measured(series)
    common = sorted(set.intersection(*(set(s.result.seeds) for s in kept))) if kept else []
    places = [[s.result.seeds.index(seed) for seed in common] for s in kept]
    empty = np.empty((0, len(common)))
    pairs = list(zip(kept, places, strict=True))
    x = np.array([errors_of(s, measure)[place] for s, place in pairs]).reshape(len(kept), -1)
    y = np.array([s.result.final_regret[place] for s, place in pairs]).reshape(len(kept), -1)
    return rank_correlation(x, y) if common else rank_correlation(empty, empty)


def measured_along(series: Series) -> PosteriorAlong:
    assert series.result.posterior is not None, "only measured series are drawn"
    return series.result.posterior
