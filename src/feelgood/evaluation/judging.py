"""From an agent's probabilities on a log to its value, with all estimators that the log allows."""

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from feelgood.evaluation.log_arrays import LogArrays
from feelgood.stats import off_policy
from feelgood.stats.off_policy import PolicyValue
from feelgood.stats.student import t_quantile

#: How far probabilities of a uniform log may differ from 1 over the number of arms, in ratio.
UNIFORM = 1e-3


@dataclasses.dataclass(frozen=True)
class AgentValue:
    """What an agent would have earned per decision, by each estimator, and doubts about that.

    `members` is the number of chains behind its probabilities; 1: its rule has a formula.
    """

    agent: str
    values: Mapping[str, PolicyValue]
    effective: float
    warnings: tuple[str, ...]
    shares: Mapping[str, float]
    members: int = 1

    @property
    def main(self) -> PolicyValue:
        """The value by the best estimator that there is: the first of `ESTIMATORS`."""
        return next(self.values[name] for name in off_policy.ESTIMATORS if name in self.values)


def judge_agent(
    agent: str,
    log: LogArrays,
    chances: Float[np.ndarray, "decisions arms"],
    model: Float[np.ndarray, "decisions arms"],
    level: float = 0.95,
    members: int = 1,
) -> AgentValue:
    """The value of a policy on decisions of a log, and what speaks against it.

    IPS, self-normalised and doubly robust need the log's probabilities. Replay needs a log that
    played all offered arms alike: where the probabilities are known and differ, it is left out.
    Decisions count by their weights in the log.
    """
    rows, mass = np.arange(len(log)), log.weights
    pi = chances[rows, log.played]
    q, q_bar = model[rows, log.played], (chances * model).sum(axis=1)
    values = {"dm": off_policy.direct_method(q_bar, level, mass)}
    uniform = 1.0 / log.offered.sum(axis=1)
    unknown = bool(np.isnan(log.probabilities).any())
    warnings = []
    if unknown or np.allclose(log.probabilities, uniform, rtol=UNIFORM, atol=0.0):
        values["replay"] = off_policy.replay(log.rewards, pi, level, mass)
    if unknown:
        effective = off_policy.effective_decisions(pi, mass)
    else:
        w = off_policy.importance_weights(pi, log.probabilities)
        values["ips"] = off_policy.inverse_propensity(log.rewards, w, level, mass)
        values["snips"] = off_policy.self_normalised(log.rewards, w, level, mass)
        values["dr"] = off_policy.doubly_robust(log.rewards, w, q, q_bar, level, mass)
        effective = off_policy.effective_decisions(w, mass)
        if doubt := off_policy.thin_overlap(w, mass):
            warnings.append(f"{agent}: {doubt}.")
    shares = dict(zip(log.arms, chances.mean(axis=0).tolist(), strict=True))
    ordered = {name: values[name] for name in off_policy.ESTIMATORS if name in values}
    return AgentValue(agent, ordered, effective, tuple(warnings), shares, members)


@dataclasses.dataclass(frozen=True)
class ValueDifference:
    """How much more one policy earns than another, paired decision by decision."""

    mean: float
    low: float
    high: float

    @property
    def is_seen(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0.0 or self.high < 0.0


def difference(
    one: Float[np.ndarray, " decisions"], other: Float[np.ndarray, " decisions"], level: float
) -> ValueDifference:
    """The mean difference of terms with its normal interval."""
    apart = one - other
    n = len(apart)
    mean = float(apart.mean())
    if n < 2:
        return ValueDifference(mean, math.nan, math.nan)
    half = t_quantile(level, n - 1.0) * float(np.std(apart, ddof=1)) / math.sqrt(n)
    return ValueDifference(mean, mean - half, mean + half)
