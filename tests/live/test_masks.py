"""Every agent chooses among the arms that a mask allows, by its own rule for those arms."""

from typing import Any

import grids
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from playable import live_plays

from feelgood.api.agent_case import PROBLEMS
from feelgood.core.policy import AGENTS
from feelgood.live.program_set import takes_masks
from feelgood.numerics import generator
from feelgood.numerics.noise import round_noise
from feelgood.stats.counts_of_law import p_of_counts

ROUNDS = 2_000
#: How often a sound agent fails by chance: 1e-6 in each of some 30 tests of counts.
LEVEL = 1e-6
QUICK = [(name, "disjoint") for name in ("uniform", "epsgreedy-tabular", "linucb")]


def started(agent: str, problem: str) -> tuple[Any, Any, Any]:
    """An agent after some rewards, and a context."""
    spec, policy = PROBLEMS[problem].spec, AGENTS[agent].build()
    state = policy.init(generator.key(0), spec)

    # Not the method itself: an agent with numbers has no hash.
    @jax.jit
    def update(*given: Any) -> Any:
        return policy.update(*given)

    rng = np.random.default_rng(0)
    for i in range(9):
        context = jnp.asarray(rng.normal(size=spec.context_shape), jnp.float32)
        state = update(state, context, jnp.asarray(i % spec.arms), jnp.asarray(float(i % 2)))
    return policy, state, context


def chooser(policy: Any, spec: Any, state: Any, context: Any) -> Any:
    """From a mask, or None, to the arms of many rounds with the same state."""
    needs = policy.needs(spec)

    def one(key: Any, *allowed: Any) -> Any:
        noise = round_noise(key, needs)
        return policy.choose(noise.choose, policy.draw(noise.draw, state), context, *allowed)

    keys = jax.random.split(generator.key(1), ROUNDS)
    play = jax.jit(lambda *mask: jax.lax.map(lambda key: one(key, *mask), keys, batch_size=50))
    return lambda allowed: np.asarray(play() if allowed is None else play(allowed))


@pytest.mark.parametrize(
    ("agent", "problem"),
    grids.slow_but(QUICK, live_plays()),
)
def test_only_allowed_arms_are_played_by_the_rule(agent: str, problem: str) -> None:
    spec = PROBLEMS[problem].spec
    policy, state, context = started(agent, problem)
    assert takes_masks(policy)
    every = jnp.ones(spec.arms, bool)
    arms_with = chooser(policy, spec, state, context)
    free = arms_with(None)
    assert np.array_equal(arms_with(every), free)
    for without in range(spec.arms):
        allowed = every.at[without].set(False)
        arms = arms_with(allowed)
        counts = np.bincount(arms, minlength=spec.arms)
        assert counts.shape == (spec.arms,) and counts[without] == 0
        law = policy.hints(spec).pmf
        if law is not None:
            chances = np.asarray(law(state, context, allowed), np.float64)
            assert chances[without] == 0.0 and chances.sum() == pytest.approx(1.0, abs=1e-5)
            assert p_of_counts(counts, chances) > LEVEL
    if policy.hints(spec).linear:
        # Where the best is allowed anyway, a mask changes nothing; else the best of the rest plays.
        kept = free != without
        assert np.array_equal(arms[kept], free[kept])
