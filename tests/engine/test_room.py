"""No state is written past its room: it grows, or says that rounds were lost."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounds import decide

from feelgood import AGENTS, Policy, Spec
from feelgood.core.spec import Layout
from feelgood.engine.lifting import for_lanes
from feelgood.targets.room import SMALLEST_ROOM

SPEC = Spec(arms=3, dim=2)
MORE = SMALLEST_ROOM + 40
CONTEXTS = jax.random.normal(jax.random.key(0), (MORE, 2))
ARMS = jax.random.randint(jax.random.key(1), (MORE,), 0, 3)
REWARDS = jax.random.normal(jax.random.key(2), (MORE,))
#: One per way of remembering: rows, rows that are pruned, batches, sums per piece, a network's.
NEURAL = {"layers": "4", "updates": 2}
REMEMBER = {
    "fglmcts": {},
    "fghmcts": {},
    "malats": {"likelihood": "bernoulli"},
    "svrglmcts": {"batch": 8},
    "fglmcts-svrg": {"bonus_gradient": "svrg"},
    "blackjax:barker": {"likelihood": "bernoulli"},
    "neural-lmcts": NEURAL,
    "neural-ts": NEURAL,
}
OFTEN = ("fglmcts", "malats", "svrglmcts", "neural-ts")
EVERY = pytest.mark.parametrize(
    "name", [n if n in OFTEN else pytest.param(n, marks=pytest.mark.slow) for n in REMEMBER]
)


def built(name: str) -> Policy:
    return AGENTS[name.removesuffix("-svrg")].build(REMEMBER[name])


def taught(policy: Policy, state: Any, rounds: slice) -> Any:
    """The state after these rounds, all in one compiled program."""

    def one(state: Any, seen: tuple[jax.Array, ...]) -> tuple[Any, None]:
        return policy.update(state, *seen), None

    seen = (CONTEXTS[rounds], ARMS[rounds], REWARDS[rounds])
    return jax.jit(lambda s: jax.lax.scan(one, s, seen)[0])(state)


@EVERY
def test_a_live_state_grows_and_is_as_if_it_had_been_reserved(name: str) -> None:
    policy = built(name)
    fresh = policy.init(jax.random.key(3), SPEC)
    # A state can act without `reserve`.
    jax.eval_shape(functools.partial(decide, policy, SPEC), jax.random.key(4), fresh, CONTEXTS[0])
    states = [fresh, policy.reserve(fresh, 2 * SMALLEST_ROOM)]
    for i, state in enumerate(states):
        full = taught(policy, state, slice(SMALLEST_ROOM))
        states[i] = policy.update(full, CONTEXTS[-1], ARMS[-1], REWARDS[-1])
    grown = states[0]
    assert policy.report(grown).finite
    for one, other in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(one, other)


@EVERY
def test_a_compiled_program_that_loses_rounds_makes_the_chain_diverge(name: str) -> None:
    policy = built(name)
    small = policy.reserve(policy.init(jax.random.key(3), SPEC), 64)
    full = taught(policy, small, slice(SMALLEST_ROOM))
    assert policy.report(full).finite
    assert not policy.report(taught(policy, full, slice(SMALLEST_ROOM, MORE))).finite


@pytest.mark.parametrize("name", ["malats", "svrglmcts"])
def test_a_chain_that_has_lost_rounds_stays_lost(name: str) -> None:
    """A Metropolis filter rejects NaN proposals; the chain must still be reported as lost."""
    policy = built(name)
    lost = taught(policy, policy.init(jax.random.key(3), SPEC), slice(MORE))
    _, drawn = jax.jit(lambda s: decide(policy, SPEC, jax.random.key(4), s, CONTEXTS[0]))(lost)
    assert not policy.report(drawn).finite


@pytest.mark.slow
def test_lifted_chains_grow_together() -> None:
    one = AGENTS["neural-ts"].build(NEURAL)
    spec = dataclasses.replace(SPEC, layout=Layout(chains=2))
    many = for_lanes(one, spec, one.hints(spec).layout)
    state = many.init(jax.random.split(jax.random.key(0), 2), spec)
    context, arm, reward = jnp.ones((2, 2)), jnp.zeros(2, jnp.int32), jnp.ones(2)
    full = eqx.tree_at(lambda s: s.replay.unbatched.value, state, jnp.asarray(SMALLEST_ROOM))
    grown = many.update(full, context, arm, reward)
    assert grown.replay.arms.shape == (2, 2 * SMALLEST_ROOM)
    assert many.report(grown).finite.all()
