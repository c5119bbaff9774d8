"""With nothing set, agents do about as well as one that is told the noise and the prior.

Each comparison is made on fresh seeds, and fails where the ratio of the mean regrets is above its
bound with a one-sided p-value below `LEVEL`. There are at most `COMPARISONS` of them, so that all
together fail by chance with probability at most 1e-3 where every true ratio is at its bound.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy import stats

import feelgood
from feelgood.numerics.noise import round_noise

AGENTS = ("lints", "lmcts", "malats", "hmcts", "plmcts")
COMPARISONS = 100
LEVEL = 1e-3 / COMPARISONS
BEDS: dict[str, tuple[str, dict[str, float]]] = {
    "as it is": ("linear-20", {}),
    "little noise": ("linear-20", {"noise": 0.05}),
    "much noise": ("linear-20", {"noise": 5.0}),
    "more dimensions": ("linear-40", {}),
    "2 arms": ("linear-20", {"arms": 2}),
    "10 arms": ("linear-20", {"arms": 10}),
}


@cache
def regrets(
    agent: str, bed: str, given: tuple[tuple[str, float], ...] = (), preset: str | None = None
) -> np.ndarray:
    """Final regrets of 100 seeds, over 10,000 rounds."""
    testbed, own = BEDS[bed]
    settings: dict[str, Any] = {agent: dict(given), "testbed": own}
    (result,) = feelgood.run(testbed, agent, seeds=100, settings=settings, preset=preset)
    assert result.status == "ok"
    return np.asarray(result.final_regret, np.float64)


def check_ratio(got: np.ndarray, reference: np.ndarray, most: float) -> None:
    """mean(got) ≤ most · mean(reference), by the seeds' paired differences."""
    difference = got - most * reference
    z = difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))
    ratio = got.mean() / reference.mean()
    assert stats.norm.sf(z) >= LEVEL, f"{ratio:.3f} times as much, at most {most} allowed"


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("bed", BEDS)
def test_as_good_as_being_told(agent: str, bed: str) -> None:
    noise = BEDS[bed][1].get("noise", 0.5)
    told = regrets("lints", bed, (("noise", noise), ("prior", 1.0)))
    check_ratio(regrets(agent, bed), told, 1.10)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [*AGENTS, "svrglmcts", "ulmcts", "phmcts"])
@pytest.mark.parametrize("bed", ["as it is", "more dimensions"])
def test_not_worse_than_the_papers_settings(agent: str, bed: str) -> None:
    check_ratio(regrets(agent, bed), regrets(agent, bed, preset="paper"), 1.15)


def arms_played(
    agent: str, rounds: int, seeds: int, features: float = 1.0, rewards: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Arms and regrets [seeds, rounds] on linear-20, with features and rewards in other units.

    The problem is the same whatever the units: the true parameters, contexts and noise are.
    """
    policy, spec = feelgood.AGENTS[agent].build(), feelgood.Spec(arms=5, dim=4)
    needs = policy.needs(spec)

    def play(seed: Array) -> tuple[Array, Array]:
        own = jax.random.key(seed)
        theta = jax.random.normal(jax.random.fold_in(own, 0), (4, 5))

        def one(state: Any, t: Array) -> tuple[Any, tuple[Array, Array]]:
            key = jax.random.fold_in(jax.random.fold_in(own, 1), t)
            x = jax.random.normal(jax.random.fold_in(key, 0), (4,))
            noise = round_noise(jax.random.fold_in(key, 1), needs)
            state = policy.draw(noise.draw, state)
            arm = policy.choose(noise.choose, state, features * x)
            means = x @ theta
            reward = means[arm] + 0.5 * jax.random.normal(jax.random.fold_in(key, 2))
            state = policy.update(state, features * x, arm, rewards * reward)
            return state, (arm, means.max() - means[arm])

        start = policy.reserve(policy.init(jax.random.fold_in(own, 2), spec), rounds)
        return jax.lax.scan(one, start, jnp.arange(rounds))[1]

    arms, regret = jax.jit(jax.vmap(play))(jnp.arange(seeds))
    return np.asarray(arms), np.asarray(regret)


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_the_units_of_the_rewards_do_not_matter(agent: str) -> None:
    """Rewards times 100: the same arms, but for rounding, in 99.9 % of rounds."""
    same = arms_played(agent, 1000, 8)[0] == arms_played(agent, 1000, 8, rewards=100.0)[0]
    assert same.mean() >= 0.999


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_the_units_of_the_features_do_not_matter(agent: str) -> None:
    """Features times 100: the same regret within 5 %."""
    plain = arms_played(agent, 3000, 64)[1].sum(axis=1).mean()
    large = arms_played(agent, 3000, 64, features=100.0)[1].sum(axis=1).mean()
    assert abs(large / plain - 1.0) <= 0.05


@pytest.mark.slow
def test_lints_out_of_the_box_beats_its_own_paper_settings() -> None:
    """A quick look at the same: 20 seeds, 2,000 rounds; 50 against 80."""
    means = [
        feelgood.run("linear-20", "lints", rounds=2000, seeds=20, preset=preset)[0].regret.mean
        for preset in (None, "paper")
    ]
    assert means[0] < 0.8 * means[1]
