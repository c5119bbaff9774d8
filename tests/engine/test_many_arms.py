"""Programs do not grow with the number of arms or dimensions, and what does not fit is refused."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rounds import decide

import feelgood
from feelgood import AGENTS, FeelgoodError, Policy, Testbed
from feelgood.engine.environment import environment
from feelgood.engine.simulation import simulate
from feelgood.engine.tally import Tally
from feelgood.numerics import lanes
from feelgood.targets.sums import Stats, update_factor, update_inverse_root
from feelgood.testbeds import Linear, Logistic


def size(value: object) -> int:
    """Equations of a traced program, those of loops and branches included."""
    inner = getattr(value, "jaxpr", value)
    if isinstance(value, (list, tuple)):
        return sum(map(size, value))
    if not hasattr(inner, "eqns"):
        return 0
    return sum(1 + sum(map(size, eqn.params.values())) for eqn in inner.eqns)


def round_size(policy: Policy, testbed: Testbed) -> int:
    """Equations of one round."""
    spec = testbed.spec

    def one_round(key: jax.Array) -> object:
        state = policy.init(key, spec)
        world = testbed.init(key)
        context = testbed.context(key, world, jnp.asarray(0))
        means = testbed.mean_rewards(world, context, jnp.asarray(0))
        arm, state = decide(policy, spec, key, state, context)
        reward = lanes.pick(means, lanes.one_hot(arm, spec.arms))
        return policy.update(state, context, arm, reward)

    return size(jax.make_jaxpr(one_round)(jax.random.key(0)))


@pytest.mark.parametrize("name", ["lints", "linucb", "epsgreedy", "plmcts", "fglmcts", "neural-ts"])
def test_a_round_is_written_as_shortly_for_300_arms_as_for_100(name: str) -> None:
    policy = AGENTS[name].build()
    for few, many in (
        (Linear(parameters=300, arms=100), Linear(parameters=900, arms=300)),
        (Logistic(dim=3, arms=100), Logistic(dim=3, arms=300)),
    ):
        assert round_size(policy, many) == round_size(policy, few) < 3_000


def test_a_round_is_written_as_shortly_for_5000_dimensions_as_for_2000() -> None:
    few, many = (Linear(parameters=p, arms=2) for p in (4_000, 10_000))
    assert round_size(AGENTS["uniform"].build(), many) == round_size(AGENTS["uniform"].build(), few)
    assert round_size(AGENTS["plmcts"].build(), many) < 3_000


def test_what_is_summed_and_what_is_written_out_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit for bit where one term counts, up to rounding otherwise."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.standard_normal(shape), jnp.float32)

    factor = 0.1 * normal(4, 3, 5, 2) + jnp.eye(4, 3)[:, :, None, None]
    x, reward, hot = normal(3, 2), normal(1, 2), lanes.one_hot(jnp.asarray([1, 4]), 5)
    values, matrix = normal(5, 2), normal(6, 6, 2)
    vector, other = normal(6, 2), normal(6, 2)

    def everything() -> Any:
        def compute(factor: jax.Array) -> Any:
            updated = update_factor(factor, x, hot, reward)
            rooted = update_inverse_root(factor[:3], x, hot)
            close = (lanes.dot(vector, other), lanes.matvec(matrix, vector))
            return (lanes.pick(values, hot), updated, rooted), close

        return jax.jit(compute)(factor)

    exact, close = everything()
    monkeypatch.setattr(lanes, "WRITTEN_OUT_ARMS", 4)
    for before, after in zip(exact, everything()[0], strict=True):
        np.testing.assert_array_equal(before, after)
    monkeypatch.setattr(lanes, "WRITTEN_OUT_TERMS", 5)
    for before, after in zip(close, everything()[1], strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-5, atol=1e-6)


def test_one_chain_alone_learns_as_one_of_many() -> None:
    """It changes the played block where it is, and no other; up to rounding."""
    rng = np.random.default_rng(1)
    factor = jnp.asarray(rng.standard_normal((4, 3, 5, 1)), jnp.float32)
    factor = 0.1 * factor + jnp.eye(4, 3)[:, :, None, None]
    x, reward = (jnp.asarray(rng.standard_normal((n, 1)), jnp.float32) for n in (3, 1))
    sums = Stats(factor[:3] ** 2, factor[3] ** 2)

    @jax.jit
    def learn(hot: jax.Array, *given: Any) -> Any:
        factor, x, reward, sums = given
        both = update_factor(factor, x, hot, reward), update_inverse_root(factor[:3], x, hot)
        return both, sums.add(x, hot, reward[0])

    for arm in range(5):
        hot = lanes.one_hot(jnp.asarray([arm]), 5)
        many = learn(hot, factor, x, reward, sums)
        alone = jax.tree.map(lambda leaf: leaf[..., 0], (hot, factor, x, reward, sums))
        one = learn(*alone)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(many), strict=True):
            np.testing.assert_allclose(a, b[..., 0], rtol=1e-6, atol=1e-7)
        others = np.arange(5) != arm
        assert np.array_equal(one[1].gram[:, :, others], sums.gram[:, :, others, 0])
        assert not np.array_equal(one[1].gram, sums.gram[..., 0])


def test_arms_are_counted_by_chain() -> None:
    tally = Tally(rounds=4, chains=2, arms=3, health_names=())
    arms = np.array([[0, 2], [2, 2], [2, 1], [1, 2]])
    for part in (arms[:1], arms[1:]):
        tally.add(np.zeros(part.shape), part, {})
    assert tally.counts.tolist() == [[1, 1, 2], [0, 1, 3]]


def test_what_does_not_fit_is_refused_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five factors and five sums of 20,000 × 20,000: 15 GiB, and a round needs three times that."""
    monkeypatch.setenv("FEELGOOD_MEMORY", "16")
    with pytest.raises(FeelgoodError, match=r"one chain of this agent needs about 44.7 GiB"):
        feelgood.run("linear-100000", ["lints"], rounds=5, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lints", "linucb", "lmcts"])
def test_ten_thousand_arms_compile_in_seconds(name: str) -> None:
    testbed = Linear(parameters=30_000, arms=10_000)
    policy = AGENTS[name].build({"steps": 1} if name == "lmcts" else {})
    began = time.process_time()
    outcome = simulate(testbed, policy, rounds=5, seeds=[0, 1], workers=1)
    assert outcome.compile_s < 10.0 or time.process_time() - began < 10.0
    assert np.isfinite(outcome.final_regret).all()


@pytest.mark.slow
def test_an_environment_of_100000_parameters_is_made() -> None:
    block = environment(feelgood.TESTBEDS["linear-100000"].build(), [0], 3)
    contexts, _, means = (np.asarray(x) for x in block)
    assert contexts.shape == (3, 20_000, 1)
    # A sum of 20,000 products of normals: 6 deviations of 15 of them are passed once in 10⁷.
    assert np.all(np.abs(means) < 6.0 * np.sqrt(20_000))
