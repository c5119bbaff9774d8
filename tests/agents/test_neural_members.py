"""Ensembles and bootstraps of networks: one member is the greedy network, and they learn.

What members see and play is in `proofs/network_models.py`.
"""

import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from proofs.targets import quick_jit
from real_data import real_arrays

import feelgood
from feelgood import AGENTS, Spec
from feelgood.agents.neural import play_greedily
from feelgood.agents.neural_greedy import NeuralEpsGreedy
from feelgood.agents.neural_members import MembersPolicy
from feelgood.core.spec import Layout
from feelgood.targets.replay import tree_slice

SPEC = Spec(arms=3, dim=2)
SMALL = {"layers": "5", "batch": 6, "updates": 3, "lr": 0.1}
ALONE = {
    "neural-ensemble": {"members": 1, "clip": 1e6, "prior_scale": 0.0},
    "neural-bootstrap": {"members": 1, "clip": 1e6, "resampling": "none"},
}


@pytest.mark.parametrize(
    ("name", "likelihood"), covering(itertools.product(ALONE, ("squared", "bernoulli")))
)
def test_one_member_is_the_greedy_network(name: str, likelihood: str) -> None:
    """The same start, and from the same keys the same parameters and arms in every round."""
    values = SMALL | {"likelihood": likelihood}
    one = AGENTS[name].build(values | ALONE[name])
    greedy = AGENTS["neural-eps-greedy"].build(values | {"epsilon": 0.0})
    assert isinstance(one, MembersPolicy) and isinstance(greedy, NeuralEpsGreedy)
    a, b = (p.reserve(p.init(jax.random.key(0), SPEC), 8) for p in (one, greedy))
    network, rng = one.network(SPEC), np.random.default_rng(1)

    @eqx.filter_jit
    def play(key: Any, a: Any, b: Any, x: Any, reward: Any) -> Any:
        a, b = one.draw(None, a), greedy.draw(one.learning_key(a), b)
        best = play_greedily(network, b.theta, x, None)
        arms = one.choose(key, a, x), greedy.choose(key, b, x), best
        thetas = a.theta[0], b.theta
        after = (p.update(s, x, arms[0], reward) for p, s in ((one, a), (greedy, b)))
        return arms, thetas, tuple(after)

    for t in range(6):
        x = jnp.asarray(rng.normal(size=2), jnp.float32)
        reward = jnp.asarray(float(rng.integers(2)))
        arms, thetas, (a, b) = play(jax.random.key(t), a, b, x, reward)
        np.testing.assert_allclose(*thetas, rtol=1e-5, atol=1e-6)
        assert int(arms[0]) == int(arms[1]) == int(arms[2])


@pytest.mark.parametrize("name", slow_but(["neural-ensemble"], ALONE))
def test_members_learn_one_after_the_other_what_they_learn_together(name: str) -> None:
    """Step by step, from the gradients of all members on the batches of that learning."""
    agent = AGENTS[name].build(SMALL | {"members": 3, "clip": 0.3, "updates": 2})
    assert isinstance(agent, MembersPolicy)

    def learned(together: bool) -> Any:
        spec = dataclasses.replace(SPEC, layout=Layout(reads_all=together))
        state = agent.init(jax.random.key(3), spec)
        x, arm, reward = jnp.asarray([0.5, -1.0]), jnp.asarray(2), jnp.asarray(3.0)
        state = agent.update(agent.update(state, x, arm, reward), -x, arm - 1, -reward)
        key = agent.learning_key(state)
        batches, theta = agent.batches(key, state.replay, 2), state.theta
        assert batches is not None
        for start in (0, 6):
            mean = agent.gradient(state, tree_slice(batches, jnp.asarray(start), 6), theta) / 6
            length = jnp.linalg.norm(mean, axis=1, keepdims=True)
            mean = jnp.where(length > 0.3, 0.3 * mean / length, mean)
            theta = theta - agent.lr * (mean + agent.weight_decay(state) / 3.0 * theta)
        return agent.learn(key, state).theta, theta, state.theta

    for together in (False, True):
        got, want, before = quick_jit(learned)(together)
        assert np.abs(want - before).max() > 0.01
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_mushrooms_are_learned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With standardised features, where uniform play loses 5,000. Two seeds had 30 and 64."""
    real_arrays("mushroom", monkeypatch)
    features = {"mushroom": {"preprocess": "standard"}}
    run = feelgood.run("mushroom", [name], rounds=10_000, seeds=1, settings=features)
    assert run[name].regret.mean < 150
