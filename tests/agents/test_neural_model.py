"""Noise, prior and temperature of the agents with a network: the map, the laws, the estimates."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from proofs.network_models import some_regression
from rounds import decide
from scipy import optimize, stats

import feelgood
from feelgood import AGENTS, FeelgoodError, Spec, simulate
from feelgood.agents.neural_linear import NeuralLinear, Regression
from feelgood.agents.neural_mcmc import NeuralThompson
from feelgood.targets.network_noise import PRIOR_REWARDS, PRIOR_SHARE, NetworkNoise
from feelgood.targets.scales import LEAST_NOISE, Scales
from feelgood.targets.sums import Stats
from feelgood.testbeds import Linear

SPEC = Spec(arms=3, dim=2)
SMALL = {"layers": "6", "batch": 8, "updates": 3}


@pytest.mark.parametrize("kernel", slow_but({"lmc"}, ["lmc", "ulmc", "hmc"]))
def test_both_vocabularies_say_the_same_law(kernel: str) -> None:
    """β = 1/(2σ²τ), η = 1, ρ = σ²/s², with the same step: the same chains but for rounding."""
    values = SMALL | ({"batch": 0} if kernel == "hmc" else {})
    words = values | {"noise": 0.4, "prior": 0.5, "temperature": 2.0}
    papers = values | {"beta": 1.0 / (2 * 0.16 * 2.0), "eta": 1.0, "rho": 0.16 / 0.25}
    states = []
    for settings in (words, papers):
        agent = AGENTS[f"neural-{kernel}ts"].build(settings)
        state = agent.reserve(agent.init(jax.random.key(0), SPEC), 8)
        act = jax.jit(lambda key, s, x, agent=agent: decide(agent, SPEC, key, s, x)[1])
        rng = np.random.default_rng(3)
        for t in range(5):
            x = jnp.asarray(rng.normal(size=2), jnp.float32)
            state = act(jax.random.key(t), state, x)
            reward = jnp.asarray(rng.normal(), jnp.float32)
            state = agent.update(state, x, jnp.asarray(t % 3), reward)
        states.append(state.chain.theta)
    np.testing.assert_allclose(states[0], states[1], rtol=1e-3, atol=1e-4)


def test_the_target_is_the_posterior() -> None:
    agent = AGENTS["neural-lmcts"].build({"noise": 0.4, "prior": 0.5, "temperature": 3.0})
    assert isinstance(agent, NeuralThompson)
    law = agent.coefficients(SPEC, agent.network_scales(SPEC, None))
    np.testing.assert_allclose(law, (1 / 3, 1 / (2 * 0.16), 1 / (2 * 0.25)), rtol=1e-6)
    assert agent.first_noise(SPEC) is None


def test_bernoulli_rewards_have_no_noise() -> None:
    agent = AGENTS["neural-lmcts"].build({"likelihood": "bernoulli", "prior": 0.5})
    assert isinstance(agent, NeuralThompson)
    assert agent.first_noise(SPEC) is None
    np.testing.assert_allclose(
        agent.coefficients(SPEC, agent.network_scales(SPEC, None)), (1, 1, 2), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("neural-lmcts", {"noise": 0.5, "beta": 2.0}, "give noise and prior, or beta, eta, rho"),
        ("neural-hmcts", {"prior": 0.5, "rho": 2.0}, "prior = 0.5 and rho = 2.0 belong"),
        ("neural-ts", {"noise": 0.5, "nu": 0.1}, "give noise and prior, or nu, reg"),
        ("fg-neural-ts", {"prior": 0.5, "reg": 0.1}, "prior = 0.5 and reg = 0.1 belong"),
        ("neural-linear", {"noise": 0.5, "nu": 0.1}, "give noise and prior, or rho, nu"),
    ],
)
def test_mixtures_are_refused(name: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        AGENTS[name].build(values)


# ---- the estimate ---------------------------------------------------------------------------


def evidence_maximum(features: np.ndarray, rewards: np.ndarray) -> float:
    """σ² at the largest evidence, with the prior s₀² of the scales as one parameter more."""
    gram = features @ features.T
    signal = np.sum(rewards**2) / np.trace(gram)

    def loss(logs: np.ndarray) -> float:
        noise, prior = np.exp(logs)
        law = stats.multivariate_normal(cov=noise * np.eye(len(rewards)) + prior * gram)
        return float(-law.logpdf(rewards) + 0.5 * np.log(prior) + 0.5 * signal / prior)

    best = optimize.minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6})
    return float(np.exp(best.x[0]))


@pytest.mark.parametrize("noise", slow_but({0.05}, [0.05, 2.0]))
def test_the_estimate_is_the_evidence_maximum_with_its_prior(noise: float) -> None:
    features, rewards = some_regression(noise, count=40)
    sums = Stats(
        gram=jnp.asarray(features.T @ features, jnp.float32)[:, :, None],
        moment=jnp.asarray(features.T @ rewards, jnp.float32)[:, None],
    )
    squares = np.sum(rewards**2)
    learned = NetworkNoise.unknown()
    step = jax.jit(lambda old: old.learn(sums, jnp.asarray(squares, jnp.float32), jnp.asarray(40)))
    for _ in range(30):
        learned = step(learned)
    want = evidence_maximum(features, rewards)
    np.testing.assert_allclose(learned.scales.noise, want, rtol=5e-3)
    shrunk = 40 * want + PRIOR_REWARDS * PRIOR_SHARE * squares / 40
    np.testing.assert_allclose(learned.variance, shrunk / (40 + PRIOR_REWARDS), rtol=5e-3)


def test_nothing_is_learned_from_rewards_of_zero() -> None:
    before = NetworkNoise.unknown()
    sums = Stats(gram=jnp.eye(2)[:, :, None], moment=jnp.zeros((2, 1)))
    after = jax.jit(lambda: before.learn(sums, jnp.zeros(()), jnp.asarray(3)))()
    for got, want in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_estimate_stays_finite_where_features_tell_nothing_apart() -> None:
    """Equal rewards and parallel features, as in the first rounds of `adult`, in 100 chains.

    The noise of the regression falls to its least within nine rewards, and ρ = σ²/s² below what
    rounding leaves of the other directions of Σ φφᵀ. What the prior of the noise says is left.
    """
    rng = np.random.default_rng(1)
    features = np.abs(rng.normal(size=(100, 50))) * (rng.random((100, 50)) < 0.6)

    @jax.jit
    @jax.vmap
    def learned(feature: jax.Array) -> tuple[NetworkNoise, jax.Array]:
        def after(noise: NetworkNoise, count: jax.Array) -> tuple[NetworkNoise, jax.Array]:
            # Summed over 1,280 rows, as the agents do, and not in one product.
            rows = jnp.broadcast_to(feature, (1280, 50))
            gram, moment = count / 1280 * (rows.T @ rows), count * feature
            noise = noise.learn(Stats(gram[:, :, None], moment[:, None]), 1.0 * count, count)
            return noise, noise.variance

        return jax.lax.scan(after, NetworkNoise.unknown(), jnp.arange(1, 15))

    noise, variances = learned(jnp.asarray(features, jnp.float32))
    assert np.isfinite(variances).all()
    np.testing.assert_allclose(noise.scales.noise, LEAST_NOISE, rtol=1e-3)
    prior = PRIOR_SHARE * PRIOR_REWARDS
    np.testing.assert_allclose(variances[:, -1], prior / (PRIOR_REWARDS + 14), rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["neural-lmcts", "neural-ulmcts", "neural-ts", "neural-malats"])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_the_truth_is_found(agent: str, noise: float) -> None:
    """On a linear problem, within 20 %: the prior is still seen, and the network is not linear."""
    settings = {"testbed": {"noise": noise}, agent: {"layers": "20"}}
    result = feelgood.run("linear-20", [agent], rounds=2000, seeds=2, settings=settings)[0]
    np.testing.assert_allclose(result.health["noise"][:, -1], noise, rtol=0.2)


def test_neural_linear_draws_where_features_tell_nothing_apart() -> None:
    """V = ρI + Σ φφᵀ with a learned ρ below the rounding of the sums: the draws are finite."""
    agent = AGENTS["neural-linear"].build({"layers": "50"})
    assert isinstance(agent, NeuralLinear)
    rng = np.random.default_rng(2)
    rows = np.abs(rng.normal(size=(100, 1, 50)) + 0.02 * rng.normal(size=(100, 9, 50)))

    @jax.jit
    @jax.vmap
    def draws(key: jax.Array, rows: jax.Array) -> jax.Array:
        sums = Stats(gram=(rows.T @ rows)[:, :, None], moment=jnp.sum(rows, 0)[:, None])
        ratio = 1e-8 * jnp.trace(sums.gram[:, :, 0])
        scales = Scales(jnp.asarray(9.0), ratio, jnp.ones(()), jnp.zeros(()))
        regression = Regression(sums, jnp.asarray(9.0), scales)
        return agent.weights(key, regression, jnp.asarray(9))

    keys = jax.random.split(jax.random.key(0), 100)
    assert np.isfinite(draws(keys, jnp.asarray(rows, jnp.float32))).all()


# ---- neural-linear; its draws and the widths of neural-ts are in `proofs/network_models.py` ---


@pytest.mark.slow
def test_neural_linear_with_told_noise_and_prior() -> None:
    """ρ = σ²/s² and the variance σ², as with ρ and ν in the paper's words."""
    words = AGENTS["neural-linear"].build({**SMALL, "noise": 0.5, "prior": 2.0})
    papers = AGENTS["neural-linear"].build({**SMALL, "rho": 0.0625, "nu": 0.25})
    problem = Linear(parameters=6, arms=3)
    a, b = (simulate(problem, p, rounds=40, seeds=[0], workers=1) for p in (words, papers))
    np.testing.assert_array_equal(a.arm_counts, b.arm_counts)
