"""Agents by name, as a service would run them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from feelgood.evaluation.log_arrays import LogArrays
from feelgood.evaluation.progressive import Learner, Maker
from feelgood.live.bandit import Bandit


def bandit_maker(seed: int, settings: Mapping[str, Mapping[str, Any]]) -> Maker:
    """Makes a `Bandit` for a log; where all rewards are 0 or 1, they are Bernoulli."""

    def make(agent: str, log: LogArrays, members: int) -> Learner:
        size = {"arm_features" if log.shared else "features": log.contexts.shape[-1]}
        truth = bool(np.isin(log.rewards, (0.0, 1.0)).all())
        return Bandit(
            agent,
            arms=list(log.arms),
            seed=seed,
            settings=settings.get(agent),
            members=members,
            rewards="bernoulli" if truth else "squared",
            **size,
        )

    return make
