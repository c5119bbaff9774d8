"""A walk through a log: an agent is judged on a block of decisions, then learns from it."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError
from feelgood.evaluation.log_arrays import LogArrays


@runtime_checkable
class Learner(Protocol):
    """What an agent must be able to do, as `feelgood.Bandit` does it."""

    def learn(self, context: Any, arm: Any, reward: Any, weight: Any = None) -> None:
        """Learn from decisions of a log: contexts, names of arms and rewards, one row each."""

    def pmf(self, x: Any, mask: Any = None) -> np.ndarray | None:
        """The probability of each arm that `mask` names, one row per context; None: unknown."""


#: From an agent's name, the log and a number of chains to a new agent.
Maker = Callable[[str, LogArrays, int], Learner]


def block_ends(decisions: int, blocks: int) -> list[int]:
    """Where the blocks end: all of about one size."""
    if not 2 <= blocks <= decisions:
        raise FeelgoodError(
            f"blocks = {blocks} is not allowed: use 2 to {decisions:,}, the decisions of the log."
        )
    return [decisions * (k + 1) // blocks for k in range(blocks)]


def chances_of(learner: Learner, log: LogArrays) -> Float[np.ndarray, "decisions arms"] | None:
    """The probability of every arm at each decision, 0 where it was not offered; None: unknown."""
    out = np.zeros(log.offered.shape)
    kinds, kind_of = np.unique(log.offered, axis=0, return_inverse=True)
    for kind, offered in enumerate(kinds):
        rows = np.flatnonzero(kind_of.ravel() == kind)
        names = None if offered.all() else [log.arms[k] for k in np.flatnonzero(offered)]
        chances = learner.pmf(log.contexts[rows], names)
        if chances is None:
            return None
        out[np.ix_(rows, np.flatnonzero(offered))] = chances
    return out


def learn_from(learner: Learner, log: LogArrays) -> None:
    """Let an agent learn decisions of a log."""
    names = [log.arms[arm] for arm in log.played]
    weights = None if (log.weights == 1.0).all() else log.weights
    learner.learn(log.contexts, names, log.rewards, weights)


def walk(
    learner: Learner,
    log: LogArrays,
    blocks: int,
    progress: Callable[[int, int], None] | None = None,
) -> Float[np.ndarray, "judged arms"] | None:
    """The probabilities that an agent gives to all arms, from the second block on; None: unknown.

    For each block it has learned from all blocks before, and from no other decision.
    """
    if chances_of(learner, log.rows(0, 1)) is None:
        return None
    start, parts = 0, []
    for end in block_ends(len(log), blocks):
        if progress is not None:
            progress(start, len(log))
        part = log.rows(start, end)
        if start:
            chances = chances_of(learner, part)
            assert chances is not None, "an agent has probabilities always or never"
            parts.append(chances)
        if end < len(log):
            learn_from(learner, part)
        start = end
    return np.concatenate(parts)


def model_rewards(log: LogArrays, blocks: int) -> Float[np.ndarray, "judged arms"]:
    """q̂ of all arms from the second block on, each block by a model of those before."""
    from feelgood.evaluation.reward_model import RidgeModel

    model, start, parts = RidgeModel(log), 0, []
    for end in block_ends(len(log), blocks):
        part = log.rows(start, end)
        if start:
            parts.append(model.predict(part))
        model.learn(part)
        start = end
    return np.concatenate(parts)
