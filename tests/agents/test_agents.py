"""The closed-form agents against direct numpy computations in float64."""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounds import decide
from scipy import stats

from feelgood import AGENTS, Policy, Spec
from feelgood.agents.ridge import RidgeState
from feelgood.core.spec import Layout
from feelgood.numerics.keys import LaneKeys

DISJOINT, SHARED = Spec(arms=3, dim=2), Spec(arms=4, dim=3, shared=True)
SPECS = pytest.mark.parametrize("spec", [DISJOINT, SHARED], ids=["disjoint", "shared"])
RIDGE = pytest.mark.parametrize("name", ["lints", "linucb", "epsgreedy"])
#: False-alarm rate of one test below.
LEVEL = 1e-6
DRAWS = 20_000


class Learned(NamedTuple):
    """A state after some observations, and the same in plain numpy: V and b of every block."""

    policy: Policy
    state: Any
    gram: np.ndarray
    moment: np.ndarray


def learn(name: str, spec: Spec, rounds: int = 40, **settings: float) -> Learned:
    policy = AGENTS[name].build(settings)
    rng = np.random.default_rng([spec.arms, spec.dim, rounds])
    rho = settings.get("rho", 0.01)
    gram = np.stack([rho * np.eye(spec.dim)] * spec.blocks)
    moment = np.zeros((spec.blocks, spec.dim))
    state = policy.init(jax.random.key(0), spec)
    update = eqx.filter_jit(policy.update)
    for _ in range(rounds):
        context = rng.normal(size=spec.context_shape).astype(np.float32)
        arm, reward = int(rng.integers(spec.arms)), np.float32(rng.normal())
        x = context[:, arm] if spec.shared else context
        block = 0 if spec.shared else arm
        gram[block] += np.outer(x, x).astype(np.float64)
        moment[block] += float(reward) * x
        state = update(state, jnp.asarray(context), jnp.asarray(arm), jnp.asarray(reward))
    return Learned(policy, state, gram, moment)


def features(spec: Spec, context: np.ndarray) -> np.ndarray:
    """[arms, dim]."""
    return context.T if spec.shared else np.stack([context] * spec.arms)


def over_keys(learned: Learned, context: np.ndarray, count: int = DRAWS) -> np.ndarray:
    """How often each arm is played in one context, over `count` independent keys."""
    keys = jax.random.split(jax.random.key(5), count)
    policy, state = learned.policy, learned.state
    spec = getattr(state, "spec", DISJOINT)
    play = jax.jit(jax.vmap(lambda k: decide(policy, spec, k, state, jnp.asarray(context))[0]))
    arms = np.asarray(play(keys))
    return np.bincount(arms, minlength=context.shape[-1] if context.ndim > 1 else 3)


@SPECS
@RIDGE
def test_the_posterior_is_that_of_numpy(name: str, spec: Spec) -> None:
    _, state, gram, moment = learn(name, spec, rho=0.1)
    assert isinstance(state, RidgeState)
    factor = np.moveaxis(np.asarray(state.ridge.factor, np.float64), 2, 0)
    np.testing.assert_allclose(factor, np.linalg.cholesky(gram), rtol=1e-4, atol=1e-5)
    white = np.asarray(state.ridge.white, np.float64).T
    restored = np.einsum("bij,bj->bi", factor, white)  # L w = b
    np.testing.assert_allclose(restored, moment, rtol=1e-4, atol=1e-5)
    assert int(state.count) == 40


@SPECS
@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0])
def test_linucb_plays_the_largest_bound(spec: Spec, alpha: float) -> None:
    """x·V⁻¹b + α √(x·V⁻¹x) with an explicit inverse, in 300 contexts."""
    policy, state, gram, moment = learn("linucb", spec, alpha=alpha)
    inverse = np.linalg.inv(gram)
    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(300, *spec.context_shape)).astype(np.float32)
    key = jax.random.key(0)
    act = jax.jit(jax.vmap(lambda x: decide(policy, spec, key, state, x)[0]))
    arms = np.asarray(act(jnp.asarray(contexts)))
    checked = 0
    for context, arm in zip(contexts, arms, strict=True):
        bounds = []
        for a, x in enumerate(features(spec, context.astype(np.float64))):
            block = 0 if spec.shared else a
            mean = x @ inverse[block] @ moment[block]
            bounds.append(mean + alpha * np.sqrt(x @ inverse[block] @ x))
        best, second = np.sort(bounds)[[-1, -2]]
        if best - second > 1e-3:  # nearer than that, float32 may decide either way
            assert arm == np.argmax(bounds)
            checked += 1
    assert checked > 250


@SPECS
@pytest.mark.parametrize("eta", [1.0, 9.0])
def test_lints_plays_each_arm_as_often_as_the_posterior_says(spec: Spec, eta: float) -> None:
    """Two samples of arms, ours and numpy's from N(V⁻¹b, V⁻¹/η): χ² at 1e-6."""
    learned = learn("lints", spec, rounds=15, eta=eta)
    _, _, gram, moment = learned
    rng = np.random.default_rng(2)
    context = rng.normal(size=spec.context_shape).astype(np.float32)
    scores = np.empty((DRAWS, spec.arms))
    thetas = [
        rng.multivariate_normal(np.linalg.solve(v, b), np.linalg.inv(v) / eta, size=DRAWS)
        for v, b in zip(gram, moment, strict=True)
    ]
    for a, x in enumerate(features(spec, context.astype(np.float64))):
        scores[:, a] = thetas[0 if spec.shared else a] @ x
    expected = np.bincount(scores.argmax(axis=1), minlength=spec.arms)
    table = np.stack([over_keys(learned, context), expected])
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 1, "the comparison must be of something random"
    assert stats.chi2_contingency(table).pvalue > LEVEL


EPSILONS = [("none", 0, 0.3), ("none", 99, 0.3), ("sqrt", 0, 0.3), ("sqrt", 99, 0.03)]


@pytest.mark.parametrize(("decay", "seen", "rate"), EPSILONS)
def test_epsgreedy_explores_at_its_rate(decay: str, seen: int, rate: float) -> None:
    """Each arm but the greedy one is played with probability ε_t / K."""
    policy = AGENTS["epsgreedy"].build({"epsilon": 0.3, "decay": decay})
    learned = learn("epsgreedy", DISJOINT)
    state = eqx.tree_at(lambda s: s.count, learned.state, jnp.asarray(seen, jnp.int32))
    context = np.asarray([1.0, -0.5], np.float32)
    theta = [np.linalg.solve(v, b) for v, b in zip(learned.gram, learned.moment, strict=True)]
    greedy = int(np.argmax(np.stack(theta) @ context))
    counts = over_keys(learned._replace(policy=policy, state=state), context)
    for arm in range(3):
        chance = rate / 3 + (arm == greedy) * (1 - rate)
        assert stats.binomtest(int(counts[arm]), DRAWS, chance).pvalue > LEVEL


def test_tabular_epsgreedy_tries_every_arm_then_plays_the_best_average() -> None:
    policy = AGENTS["epsgreedy-tabular"].build({"epsilon": 0.0})
    rng = np.random.default_rng(3)
    state = policy.init(jax.random.key(0), DISJOINT)
    rewards: list[list[float]] = [[], [], []]
    act, update = (
        eqx.filter_jit(functools.partial(decide, policy, DISJOINT)),
        eqx.filter_jit(policy.update),
    )
    played = []
    for t in range(60):
        context = jnp.asarray(rng.normal(size=2), jnp.float32)
        arm, state = act(jax.random.key(t), state, context)
        chosen = int(arm)
        if t < 3:
            assert chosen == t
        else:
            assert chosen == np.argmax([np.mean(r) for r in rewards])
        reward = np.float32(rng.normal() - chosen)
        rewards[chosen].append(float(reward))
        played.append(chosen)
        state = update(state, context, arm, jnp.asarray(reward))
    np.testing.assert_array_equal(state.plays, np.bincount(played, minlength=3))
    np.testing.assert_allclose(state.mean, [np.mean(r) for r in rewards], rtol=1e-5)


@pytest.mark.parametrize(("decay", "rate"), [("none", 0.5), ("sqrt", 0.05)])
def test_tabular_epsgreedy_explores_at_its_rate(decay: str, rate: float) -> None:
    policy = AGENTS["epsgreedy-tabular"].build({"epsilon": 0.5, "decay": decay})
    state = policy.init(jax.random.key(0), DISJOINT)
    state = state._replace(
        plays=jnp.asarray([40.0, 40.0, 19.0]),
        mean=jnp.asarray([0.1, 0.7, 0.2]),
        observed=jnp.asarray(99, jnp.int32),
    )
    counts = over_keys(Learned(policy, state, np.empty(0), np.empty(0)), np.zeros(2, np.float32))
    for arm in range(3):
        chance = rate / 3 + (arm == 1) * (1 - rate)
        assert stats.binomtest(int(counts[arm]), DRAWS, chance).pvalue > LEVEL


def test_uniform_plays_every_arm_equally_often() -> None:
    policy = AGENTS["uniform"].build()
    state = policy.init(jax.random.key(0), DISJOINT)
    counts = over_keys(Learned(policy, state, np.empty(0), np.empty(0)), np.zeros(2, np.float32))
    assert stats.chisquare(counts).pvalue > LEVEL


def test_settings_of_a_sweep_reach_their_own_lanes() -> None:
    """Two settings × three seeds: lane g·3 + n has setting g, and the seeds' noise is shared."""
    policy = AGENTS["epsgreedy"].build()
    swept = eqx.tree_at(lambda p: p.epsilon, policy, jnp.repeat(jnp.asarray([0.0, 1.0]), 3))
    keys = LaneKeys(keys=jax.random.split(jax.random.key(1), 3), settings=2)
    spec = dataclasses.replace(DISJOINT, layout=Layout(chains=6, settings=2))
    state = swept.init(keys, spec)
    arms = []
    for t in range(40):
        folded = LaneKeys(keys=jax.random.split(jax.random.key(t), 3), settings=2)
        arm, state = decide(swept, spec, folded, state, jnp.ones((2, 6)))
        arms.append(np.asarray(arm))
    never, always = np.stack(arms)[:, :3], np.stack(arms)[:, 3:]
    assert np.all(never == 0), "no data: the greedy arm is the first"
    assert len(np.unique(always)) == 3
