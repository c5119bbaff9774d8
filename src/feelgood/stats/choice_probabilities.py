"""The probability that each arm has the largest score, from the law of the scores."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.score_law import ScoreLaw
from feelgood.stats.independent_scores import FINEST, Accuracy, independent_choices
from feelgood.stats.scaled_scores import scaled_choices
from feelgood.stats.shared_scores import POINTS, shared_choices


class ChoiceProbabilities(NamedTuple):
    """With which probability each arm is played."""

    #: Float64; they sum to 1.
    pmf: Float[np.ndarray, " arms"]
    #: Their standard error: 0 where they are exact, but for rounding.
    error: Float[np.ndarray, " arms"]


def choice_probabilities(
    law: ScoreLaw, mask: Any = None, points: int = POINTS, accuracy: Accuracy = FINEST
) -> ChoiceProbabilities:
    """The law of the arm with the largest score, of one chain.

    Two arms: in closed form. Independent scores: by integrals, exact to 1e-10. Scores that share
    parameters: by quasi-Monte Carlo with `points` points for each of 8 scrambles. `mask` says which
    arms there are; the others have probability 0. `accuracy` is that of the integrals.

    **Example:**

    >>> import numpy as np
    >>> from feelgood.core.score_law import ScoreLaw
    >>> from feelgood.stats.choice_probabilities import choice_probabilities
    >>> law = ScoreLaw(mean=np.array([0.0, 1.0]), deviation=np.array([1.0, 1.0]))
    >>> choice_probabilities(law).pmf.round(4)  # Φ(±1/√2)
    array([0.2398, 0.7602])
    >>> choice_probabilities(law, mask=[True, False]).pmf
    array([1., 0.])
    """
    mean, spread = _numbers(law)
    there = _mask(mask, len(mean))
    freedom = None if law.freedom is None else float(law.freedom)
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(spread))):
        raise FeelgoodError("the law of the scores is not finite: the agent has diverged.")
    if freedom is not None and not freedom > 0.0:
        raise FeelgoodError(f"freedom = {shown(freedom)} is not allowed: use a number above 0.")
    if freedom == np.inf:
        freedom = None
    pmf, error = np.zeros(len(mean)), np.zeros(len(mean))
    mean, spread = mean[there], spread[there]
    if len(mean) == 2 and spread.ndim == 1:
        spread = np.diag(spread)  # two arms have a closed form
    if spread.ndim == 2:
        pmf[there], error[there] = shared_choices(mean, spread, freedom, points)
    elif freedom is not None:
        pmf[there] = scaled_choices(mean, spread, freedom, accuracy)
    else:
        pmf[there] = independent_choices(mean[None], spread[None], accuracy)[0]
    return ChoiceProbabilities(pmf, error)


def _numbers(law: ScoreLaw) -> tuple[np.ndarray, np.ndarray]:
    """The mean, and deviations `[arms]` or a root `[arms, normals]`."""
    if (law.deviation is None) == (law.root is None):
        raise FeelgoodError("a law of scores has either a deviation or a root: give one of them.")
    mean = np.asarray(law.mean, np.float64)
    if law.root is not None:
        spread, shape = np.asarray(law.root, np.float64), "[arms, normals]"
        fits = spread.ndim == 2
    else:
        spread, shape = np.abs(np.asarray(law.deviation, np.float64)), "[arms]"
        fits = spread.ndim == 1
    if mean.ndim != 1 or not fits or len(mean) != len(spread):
        raise FeelgoodError(
            f"a mean of shape {mean.shape} and a spread of shape {spread.shape} are no law of "
            f"scores: use [arms] and {shape}, of one chain."
        )
    return mean, spread


def _mask(mask: Any, arms: int) -> Bool[np.ndarray, " arms"]:
    if mask is None:
        return np.ones(arms, bool)
    there = np.asarray(mask)
    if there.shape != (arms,) or there.dtype != np.bool_:
        raise FeelgoodError(f"mask = {shown(mask)} is not allowed: use {arms} truth values.")
    if not there.any():
        raise FeelgoodError("the mask leaves no arm: allow at least one.")
    return there
