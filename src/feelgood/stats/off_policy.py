"""What a policy would have earned on decisions that another one made: estimators of its value.

For each logged decision, r is the reward, p the probability with which the log played its arm,
π the probability of the same arm under the policy that is judged, and w = π/p. The model's
estimate of an arm's reward is q̂, and q̄ = Σ_a π(a) q̂(a).

| name | value | needs |
|---|---|---|
| `replay` | Σ π r / Σ π | a log that played all arms alike |
| `ips` | mean of w r | p |
| `snips` | Σ w r / Σ w | p |
| `dm` | mean of q̄ | a good model |
| `dr` | mean of q̄ + w (r − q̂ of the arm) | p |

Replay: Li et al., "Unbiased offline evaluation of contextual-bandit-based news article
recommendation algorithms", WSDM 2011. Here every decision counts as much as the policy would have
made it. That has the mean of drawing an arm, and less variance. Inverse propensity score (IPS):
Horvitz and Thompson, JASA 1952. Self-normalised: Swaminathan and Joachims, NeurIPS 2015. Doubly
robust: Dudík, Langford and Li, ICML 2011.

All take a `mass`, how often each decision counts; every sum above is then weighted with it. A log
that kept only a share of some decisions is judged so.

Every interval is the normal one: value ± t · standard error with Student's quantile. For the two
ratios the error is that of the linearised ratio (the delta method). The interval of `dm` is for the
contexts alone: it does not know how wrong the model is. With heavy weights all intervals are too
short; then `thin_overlap` warns.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.arguments import parse_level
from feelgood.core.errors import FeelgoodError
from feelgood.stats.student import t_quantile

#: Number per logged decision.
PerDecision = Float[np.ndarray, " decisions"]
#: Estimators, in the order of a table.
ESTIMATORS = ("dr", "snips", "ips", "dm", "replay")
#: Fewer effective decisions than this, or than this share of all, are a thin overlap.
FEWEST_EFFECTIVE = 100.0
SMALLEST_SHARE = 0.01
#: Standard errors between the mean weight and 1 from which on the probabilities are doubted.
#: Where they are right, this happens by chance for one log in 1.6 million.
DOUBTED = 5.0
#: How far rounded probabilities may move the mean weight.
ROUNDED = 1e-3


@dataclasses.dataclass(frozen=True)
class PolicyValue:
    """The value of a policy per decision, its interval, and the decisions that it rests on.

    `terms` has one number per decision; their mean minus `value` is 0 to first order, so that two
    policies on one log are compared by the differences of their terms.
    """

    value: float
    low: float
    high: float
    level: float
    count: int
    error: float
    terms: PerDecision = dataclasses.field(repr=False, compare=False)


def _ratio(rewards: PerDecision, weights: PerDecision, level: float) -> PolicyValue:
    """Σ w r / Σ w, with the error of its linearisation; NaN where all weights are 0.

    With equal weights this is the mean of r with its usual error.
    """
    n, total = len(rewards), float(np.sum(weights))
    if not n:
        raise FeelgoodError("there are no decisions to judge: give at least one.")
    value = float(np.sum(weights * rewards)) / total if total > 0.0 else math.nan
    terms = value + (rewards - value) * weights * (n / total if total > 0.0 else math.nan)
    error = float(np.std(terms, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    half = t_quantile(level, n - 1.0) * error if n > 1 else math.nan
    return PolicyValue(value, value - half, value + half, level, n, error, terms)


def _checked(level: Any, **columns: Any) -> tuple[float, list[PerDecision]]:
    """The level, and columns of one length as float64."""
    arrays = [np.asarray(column, np.float64) for column in columns.values()]
    lengths = {name: a.shape for name, a in zip(columns, arrays, strict=True)}
    if len(set(lengths.values())) != 1 or arrays[0].ndim != 1:
        shapes = ", ".join(f"{name} {shape}" for name, shape in lengths.items())
        raise FeelgoodError(f"the arrays differ in shape ({shapes}): give one number per decision.")
    for name, array in zip(columns, arrays, strict=True):
        if not np.isfinite(array).all():
            raise FeelgoodError(f"{name} has a number that is not finite: leave that decision out.")
    return parse_level("level", level), arrays


def importance_weights(chances: Any, probabilities: Any) -> PerDecision:
    """w = π/p, the policy's probability of the logged arm over the log's own."""
    _, (pi, p) = _checked(0.5, chances=chances, probabilities=probabilities)
    if not (p > 0.0).all():
        raise FeelgoodError("a logged probability is 0: an arm that was played had a chance.")
    return pi / p


def _masses(mass: Any, like: PerDecision) -> PerDecision:
    """How much each decision counts; all alike unless told otherwise."""
    if mass is None:
        return np.ones(len(like))
    _, (m, _) = _checked(0.5, mass=mass, rewards=like)
    if (m < 0.0).any():
        raise FeelgoodError("a mass is below 0: a decision counts 0 times or more.")
    return m


def replay(rewards: Any, chances: Any, level: Any = 0.95, mass: Any = None) -> PolicyValue:
    """Σ π r / Σ π: right where the log played all arms alike."""
    level, (r, pi) = _checked(level, rewards=rewards, chances=chances)
    return _ratio(r, pi * _masses(mass, r), level)


def inverse_propensity(
    rewards: Any, weights: Any, level: Any = 0.95, mass: Any = None
) -> PolicyValue:
    """Mean of w r: unbiased where the log could play every arm that the policy plays."""
    level, (r, w) = _checked(level, rewards=rewards, weights=weights)
    return _ratio(w * r, _masses(mass, r), level)


def self_normalised(rewards: Any, weights: Any, level: Any = 0.95, mass: Any = None) -> PolicyValue:
    """Σ w r / Σ w: a little biased for few decisions, and much less noisy."""
    level, (r, w) = _checked(level, rewards=rewards, weights=weights)
    return _ratio(r, w * _masses(mass, r), level)


def direct_method(values: Any, level: Any = 0.95, mass: Any = None) -> PolicyValue:
    """Mean of q̄ = Σ_a π(a) q̂(a): as right as the model."""
    level, (q_bar,) = _checked(level, values=values)
    return _ratio(q_bar, _masses(mass, q_bar), level)


def doubly_robust(
    rewards: Any,
    weights: Any,
    estimates: Any,
    values: Any,
    level: Any = 0.95,
    mass: Any = None,
) -> PolicyValue:
    """Mean of q̄ + w (r − q̂): unbiased as IPS is, and the less noisy the better the model.

    `estimates` are q̂ of the logged arms, `values` are q̄. The model must not have seen the reward
    of the decision that it is used for.
    """
    level, (r, w, q, q_bar) = _checked(
        level, rewards=rewards, weights=weights, estimates=estimates, values=values
    )
    return _ratio(q_bar + w * (r - q), _masses(mass, r), level)


def effective_decisions(weights: Any, mass: Any = None) -> float:
    """(Σw)² / Σw²: as many decisions of the policy's own would be as telling (Kish, 1965)."""
    _, (w,) = _checked(0.5, weights=weights)
    w = w * _masses(mass, w)
    squares = float(np.sum(w**2))
    return float(np.sum(w)) ** 2 / squares if squares > 0.0 else 0.0


def thin_overlap(weights: Any, mass: Any = None) -> str | None:
    """A sentence where the log says too little about the policy, or contradicts itself; or None."""
    effective, n = effective_decisions(weights, mass), len(weights)
    if effective < FEWEST_EFFECTIVE or effective < SMALLEST_SHARE * n:
        return (
            f"the overlap is too thin: {n:,} decisions are worth {effective:,.0f} of its own, so "
            "its intervals are too short"
        )
    mean = direct_method(weights, mass=mass)
    if abs(mean.value - 1.0) > DOUBTED * mean.error + ROUNDED:
        return (
            f"the mean weight is {mean.value:.3g} and should be 1: the log lacks arms that it "
            "would play, or its probabilities are wrong"
        )
    return None
