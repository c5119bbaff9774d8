"""Ensembles and bootstraps of networks: one member is the greedy network, and what members see."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from real_data import real_arrays
from scipy import stats

import feelgood
from feelgood import AGENTS, Spec
from feelgood.agents.neural import TrainedState, play_greedily
from feelgood.agents.neural_bootstrap import NeuralBootstrap
from feelgood.agents.neural_ensemble import NeuralEnsemble
from feelgood.agents.neural_greedy import NeuralEpsGreedy
from feelgood.agents.neural_members import MembersPolicy

SPEC = Spec(arms=3, dim=2)
SMALL = {"layers": "5", "batch": 6, "updates": 3, "lr": 0.1}
ALONE = {
    "neural-ensemble": {"members": 1, "clip": 1e6, "prior_scale": 0.0},
    "neural-bootstrap": {"members": 1, "clip": 1e6, "resampling": "none"},
}


def some_rounds(agent: Any, count: int, spec: Spec = SPEC) -> TrainedState:
    rng = np.random.default_rng(count)
    state = agent.reserve(agent.init(jax.random.key(0), spec), count)
    for _ in range(count):
        x = jnp.asarray(rng.normal(size=2), jnp.float32)
        arm, reward = rng.integers(3), rng.normal()
        state = agent.update(state, x, jnp.asarray(arm), jnp.asarray(reward, jnp.float32))
    return state


@pytest.mark.parametrize("likelihood", ["squared", "bernoulli"])
@pytest.mark.parametrize("name", ALONE)
def test_one_member_is_the_greedy_network(name: str, likelihood: str) -> None:
    """The same start, and from the same keys the same parameters and arms in every round."""
    values = SMALL | {"likelihood": likelihood}
    one = AGENTS[name].build(values | ALONE[name])
    greedy = AGENTS["neural-eps-greedy"].build(values | {"epsilon": 0.0})
    assert isinstance(one, MembersPolicy) and isinstance(greedy, NeuralEpsGreedy)
    a, b = (p.reserve(p.init(jax.random.key(0), SPEC), 8) for p in (one, greedy))
    network, rng = one.network(SPEC), np.random.default_rng(1)
    learn = eqx.filter_jit(greedy.draw)
    for t in range(6):
        key = one.learning_key(a)
        a, b = one.draw(None, a), learn(key, b)
        np.testing.assert_allclose(a.theta[0], b.theta, rtol=1e-5, atol=1e-6)
        x = jnp.asarray(rng.normal(size=2), jnp.float32)
        arm = one.choose(jax.random.key(t), a, x)
        assert int(arm) == int(greedy.choose(jax.random.key(t), b, x))
        assert int(arm) == int(play_greedily(network, b.theta, x))
        reward = jnp.asarray(float(rng.integers(2)))
        a, b = (p.update(s, x, arm, reward) for p, s in ((one, a), (greedy, b)))


def test_members_of_an_ensemble_fit_what_their_priors_leave() -> None:
    """∇ Σ (g + c p − r)² by automatic differentiation, and scores g + c p."""
    agent = AGENTS["neural-ensemble"].build(SMALL | {"members": 3, "prior_scale": 2.0})
    assert isinstance(agent, NeuralEnsemble)
    state = some_rounds(agent, 7)
    network, batch = agent.network(SPEC), state.replay.first(7)
    assert len({*np.round(np.asarray(state.extra.own[:, 0]), 6)}) == 3

    def loss(theta: jax.Array, fixed: jax.Array) -> jax.Array:
        total = jnp.zeros(())
        for i in range(7):
            x, arm = state.replay.contexts[i, :2], state.replay.arms[i]
            f = network.scores(theta, x)[arm] + 2.0 * network.scores(fixed, x)[arm]
            total = total + (f - state.replay.rewards[i]) ** 2
        return total

    want = jax.vmap(jax.grad(loss))(state.theta, state.extra.own)
    np.testing.assert_allclose(
        agent.gradient(state, batch, state.theta), want, rtol=1e-4, atol=1e-5
    )
    x = jnp.asarray([0.3, -1.0])
    for k in range(3):
        both = network.scores(state.theta[k], x) + 2.0 * network.scores(state.extra.own[k], x)
        got = agent.member_scores(state, jnp.asarray(k), x)
        np.testing.assert_allclose(got, both, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("resampling", "law"),
    [
        ("double-or-nothing", {0: 0.5, 2: 0.5}),
        ("poisson", {k: float(stats.poisson.pmf(k, 1)) for k in range(6)}),
    ],
)
def test_how_often_a_reward_counts(resampling: str, law: dict[int, float]) -> None:
    """20,000 weights against their law by χ², false alarms 1e-6; a round keeps its own."""
    values = SMALL | {"members": 100, "resampling": resampling}
    agent = AGENTS["neural-bootstrap"].build(values)
    assert isinstance(agent, NeuralBootstrap)
    state = some_rounds(agent, 3)
    counts = np.asarray(agent.resampled(state, state.replay.gather(jnp.arange(200))))
    last = len(law) - 1 if resampling == "poisson" else 2
    seen = np.bincount(np.minimum(counts.astype(int), last).reshape(-1), minlength=last + 1)
    chances = np.array([law.get(k, 0.0) for k in range(last + 1)])
    chances[last] = 1.0 - chances[:last].sum()
    some = chances > 0
    assert stats.chisquare(seen[some], counts.size * chances[some]).pvalue > 1e-6
    assert seen[~some].sum() == 0
    again = agent.resampled(state, state.replay.gather(jnp.asarray([17, 5, 17])))
    np.testing.assert_array_equal(again, counts[:, [17, 5, 17]])


def test_weights_multiply_the_loss() -> None:
    agent = AGENTS["neural-bootstrap"].build(SMALL | {"members": 2})
    assert isinstance(agent, NeuralBootstrap)
    state = some_rounds(agent, 5)
    one_by_one = 0.0
    for i in range(5):
        row = state.replay.gather(jnp.asarray([i]))
        plain = AGENTS["neural-bootstrap"].build(SMALL | {"members": 2, "resampling": "none"})
        assert isinstance(plain, NeuralBootstrap)
        weight = agent.resampled(state, row)
        one_by_one = one_by_one + weight * plain.gradient(state, row, state.theta)
    whole = agent.gradient(state, state.replay.first(5), state.theta)
    np.testing.assert_allclose(whole, one_by_one, rtol=1e-4, atol=1e-5)


def test_long_gradients_are_shortened() -> None:
    values = SMALL | {"members": 2, "clip": 1e-3, "updates": 1, "reg": 0.0}
    agent = AGENTS["neural-bootstrap"].build(values | {"resampling": "none"})
    state = some_rounds(agent, 5)
    moved = agent.draw(None, state).theta - state.theta
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 0.1 * 1e-3, rtol=1e-2)


@pytest.mark.parametrize("name", ALONE)
def test_the_probabilities_are_shares_of_members(name: str) -> None:
    agent = AGENTS[name].build(SMALL | {"members": 8})
    assert isinstance(agent, MembersPolicy)
    state = some_rounds(agent, 5)
    after, x = agent.draw(None, state), jnp.asarray([0.4, 1.0])
    best = [int(jnp.argmax(agent.member_scores(after, jnp.asarray(k), x))) for k in range(8)]
    np.testing.assert_allclose(agent.pmf(state, x), np.bincount(best, minlength=3) / 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_mushrooms_are_learned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 3,000 rounds, of which uniform play loses 1,500."""
    real_arrays("mushroom", monkeypatch)
    assert feelgood.run("mushroom", [name], rounds=3000, seeds=1)[name].regret.mean < 150
