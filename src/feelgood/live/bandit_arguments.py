"""Arguments of a bandit, checked."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.spec import Likelihood
from feelgood.live.live_state import LiveState
from feelgood.live.requests import parse_reward, parse_weight


def several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def same_length(what: str, values: Any, length: int) -> None:
    given = len(values) if several(values) and hasattr(values, "__len__") else 1
    if not several(values) or given != length:
        raise FeelgoodError(f"{what}: {given} given for {length} rows; use one per row.")


def whole(name: str, value: Any, low: int, high: int) -> int:
    good = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not good or not low <= value <= high:
        raise FeelgoodError(
            f"{name} = {shown(value)} is not allowed: use a whole number from {low} to {high}."
        )
    return int(value)


def dimension(features: Any, arm_features: Any) -> int:
    if (features is None) == (arm_features is None):
        raise FeelgoodError("give either features or arm_features: how many numbers a context has.")
    if features is None:
        return whole("arm_features", arm_features, 1, 1_000_000)
    return whole("features", features, 1, 1_000_000)


def likelihood(value: Any) -> Likelihood:
    if value == "squared":
        return "squared"
    if value == "bernoulli":
        return "bernoulli"
    raise FeelgoodError(f"rewards = {shown(value)} is not allowed: use 'squared' or 'bernoulli'.")


def share(value: Any) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not good or not 0.0 < float(value) <= 1.0:
        raise FeelgoodError(
            f"forget = {shown(value)} is not allowed: use a share above 0 and at most 1."
        )
    return float(value)


def pairs(state: LiveState, count: int, rewards: Any, weights: Any) -> list[tuple[float, float]]:
    """So many rewards with their weights."""
    same_length("rewards", rewards, count)
    numbers = [parse_reward(reward, state.bernoulli) for reward in rewards]
    if weights is None or np.ndim(weights) == 0:
        weights = [weights] * count
    same_length("weights", weights, count)
    counted = [parse_weight(weight, state.player.sums, state.agent) for weight in weights]
    return list(zip(numbers, counted, strict=True))


def seconds(value: Any) -> float:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not good or not float(value) >= 0.0:
        raise FeelgoodError(f"older_than = {shown(value)} is not allowed: use seconds, at least 0.")
    return float(value)
