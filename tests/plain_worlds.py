"""The worlds played again in plain NumPy, and what regret is expected in the smallest of them.

Nothing is shared with the package: laws are written out from their formulas in float64, and seeds
are rows of an array.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, special

#: Log-odds beyond which an optimist who is right is never doubted again.
SURE = 40.0
#: From the number of a round, counted from 1, to its weight of the bonus.
Weights = Callable[[int], float]


def no_bonus(_: int) -> float:
    return 0.0


def constant(lam: float) -> Weights:
    return lambda _: lam


def falling(lam: float) -> Weights:
    return lambda t: lam / np.sqrt(t)


def with_class(
    means: Sequence[Sequence[float]],
    masses: Sequence[float],
    truth: Sequence[float],
    noise: float,
    *,
    weights: Weights = no_bonus,
    clip: float = 0.0,
    rounds: int,
    seeds: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Regrets of agents who know that one of some vectors of mean rewards is right."""
    table, paid = np.asarray(means, float), np.asarray(truth, float)
    best = np.eye(len(paid))[table.argmax(axis=1)]
    score = np.tile(np.log(masses), (seeds, 1))
    regret, total = np.zeros(seeds), 0.0
    for t in range(1, rounds + 1):
        chance = special.softmax(score + total * table.max(axis=1), axis=1) @ best
        chance = np.where(chance >= clip, chance, 0.0)
        chance /= chance.sum(axis=1, keepdims=True)
        arm = (np.cumsum(chance, axis=1) < rng.random(seeds)[:, None]).sum(axis=1)
        arm = np.minimum(arm, len(paid) - 1)
        reward = paid[arm] + noise * rng.normal(size=seeds)
        score -= 0.5 * ((reward[:, None] - table[:, arm].T) / noise) ** 2
        regret += paid.max() - paid[arm]
        total += weights(t)
    return regret


def with_two_normal_arms(
    truth: Sequence[float],
    prior: Sequence[float],
    told_noise: float,
    noise: Sequence[float],
    *,
    weights: Weights = no_bonus,
    inflation: float = 1.0,
    rounds: int,
    seeds: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Regrets of agents who know two means to be N(0, prior²), by the closed form."""
    paid, precision = np.asarray(truth, float), 1.0 / np.asarray(prior, float) ** 2
    count, total_reward = np.zeros((seeds, 2)), np.zeros((seeds, 2))
    regret, total, rows = np.zeros(seeds), 0.0, np.arange(seeds)
    for t in range(1, rounds + 1):
        variance = 1.0 / (precision + count / told_noise**2)
        mean = variance * total_reward / told_noise**2
        variance = variance * inflation**2
        gap, spread = mean[:, 0] - mean[:, 1], np.sqrt(variance.sum(axis=1))
        parts = [
            total * mean[:, i]
            + 0.5 * total**2 * variance[:, i]
            + special.log_ndtr((sign * gap + total * variance[:, i]) / spread)
            for i, sign in enumerate((1.0, -1.0))
        ]
        arm = (rng.random(seeds) >= special.expit(parts[0] - parts[1])).astype(int)
        reward = paid[arm] + np.asarray(noise)[arm] * rng.normal(size=seeds)
        count[rows, arm] += 1.0
        total_reward[rows, arm] += reward
        regret += paid.max() - paid[arm]
        total += weights(t)
    return regret


class Expected(NamedTuple):
    """Mean and standard deviation of a seed's regret."""

    mean: float
    deviation: float


def two_point_regret(
    mass: float,
    good: float,
    bad: float,
    *,
    optimist_is_right: bool,
    weights: Weights = no_bonus,
    clip: float = 0.0,
    noise: float = 1.0,
    rounds: int = 10_000,
) -> Expected:
    """The regret of the agent who knows that arm 1 pays `good` or `bad`, without a single draw.

    All that the agent's law depends on is the log-odds of the optimist. A play of arm 1 adds a
    normal number, a round adds λ_t · good. So the density of the log-odds, and with it the first
    two moments of the regret so far, go from round to round by a convolution.
    """
    span, truth = good - bad, good if optimist_is_right else bad
    step_mean, step_deviation = span * (truth - (good + bad) / 2) / noise**2, span / noise
    total = good * sum(weights(t) for t in range(1, rounds + 1))
    # Densities are smooth but for the clip: then few cells per step are exact.
    cell = min(0.5, step_deviation / (20.0 if clip else 2.0))
    low, high = -SURE - 20.0 - total, SURE + 20.0 + 10.0 * step_deviation
    size = fft.next_fast_len(int((high - low) / cell) + 1, real=True)
    start = special.logit(mass)
    middle = round((start - low) / cell)
    place = start + (np.arange(size) - middle) * cell
    offsets = (np.arange(size) + size // 2) % size - size // 2
    kernel = np.exp(-0.5 * ((offsets * cell - step_mean) / step_deviation) ** 2)
    turn = fft.rfft(kernel / kernel.sum())
    moments = np.zeros((3, size))
    moments[0, middle] = 1.0
    costs = (good, 0.0) if optimist_is_right else (0.0, -bad)
    shift = 0.0
    for t in range(1, rounds + 1):
        odds = place + shift
        chance = special.expit(odds)
        chance = np.where(chance < clip, 0.0, np.where(chance > 1.0 - clip, 1.0, chance))
        stay = (1.0 - chance) * _after(moments, costs[0])
        play = chance * _after(moments, costs[1])
        # Who is sure of the truth stays so.
        sure = (odds > SURE) & optimist_is_right
        stay, play = np.where(sure, moments, stay), np.where(sure, 0.0, play)
        moments = stay + fft.irfft(fft.rfft(play) * turn, size)
        shift += good * weights(t)
    lost, mean, square = moments.sum(axis=1)
    assert abs(lost - 1.0) < 1e-6
    return Expected(float(mean), float(np.sqrt(max(square - mean**2, 0.0))))


def _after(moments: np.ndarray, cost: float) -> np.ndarray:
    """Density, and density times the regret and its square, once the regret has grown by a cost."""
    one, first, second = moments
    return np.stack([one, first + cost * one, second + 2 * cost * first + cost**2 * one])


def stuck(regrets: Any, gap: float, rounds: int) -> np.ndarray:
    """Seeds that play the worse arm in most rounds."""
    return np.asarray(regrets) > 0.5 * gap * rounds
