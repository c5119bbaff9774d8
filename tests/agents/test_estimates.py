"""The estimates that agents act on: modes and precisions against SciPy and closed forms."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from proofs.targets import Problem, problem, quick_jit
from scipy import optimize

from feelgood import AGENTS, Spec
from feelgood.agents.estimates import EstimatePolicy, FittedState
from feelgood.targets.logistic_fit import DRIFT, hessian


def mode(x: np.ndarray, r: np.ndarray, precision: float) -> tuple[np.ndarray, np.ndarray]:
    """θ̂ of a logistic model and H there, in float64."""

    def value(theta: np.ndarray) -> float:
        z = x @ theta
        return float(np.logaddexp(0.0, z).sum() - r @ z + 0.5 * precision * theta @ theta)

    def slope(theta: np.ndarray) -> np.ndarray:
        return x.T @ (1.0 / (1.0 + np.exp(-x @ theta)) - r) + precision * theta

    def curvature(theta: np.ndarray) -> np.ndarray:
        chance = 1.0 / (1.0 + np.exp(-x @ theta))
        weights = chance * (1.0 - chance)
        return (x * weights[:, None]).T @ x + precision * np.eye(x.shape[1])

    start = np.zeros(x.shape[1])
    theta = optimize.minimize(value, start, jac=slope, hess=curvature, method="trust-exact").x
    for _ in range(30):
        theta = theta - np.linalg.solve(curvature(theta), slope(theta))
    assert np.abs(slope(theta)).max() < 1e-8 * (1.0 + np.abs(x).sum())
    return theta, curvature(theta)


def states(policy: EstimatePolicy, data: Problem) -> list[Any]:
    """The state after every round of the data."""
    update = quick_jit(policy.update)
    state, seen = policy.reserve(policy.init(jax.random.key(0), data.spec), data.rounds), []
    for context, arm, reward in zip(data.contexts, data.arms, data.rewards, strict=True):
        state = update(state, context, jnp.asarray(arm), jnp.asarray(reward))
        seen.append(state)
    return seen


def dense(lower: np.ndarray) -> np.ndarray:
    """L Lᵀ of all blocks as one matrix of the flat parameters."""
    dim, blocks = lower.shape[1:3]
    out = np.zeros((dim, blocks, dim, blocks))
    for a in range(blocks):
        out[:, a, :, a] = lower[:, :, a].astype(np.float64) @ lower[:, :, a].astype(np.float64).T
    return out.reshape(dim * blocks, dim * blocks)


def scaled(data: Problem, factor: float) -> Problem:
    return dataclasses.replace(data, contexts=(factor * data.contexts).astype(np.float32))


def slow(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


SHARED = problem(Spec(arms=3, dim=4, shared=True, rewards="bernoulli"), 150)
DISJOINT = problem(Spec(arms=3, dim=2, rewards="bernoulli"), 150)
LARGE = problem(Spec(arms=2, dim=12, shared=True, rewards="bernoulli"), 300)
#: All rewards alike: without a prior there is no mode.
ONES = dataclasses.replace(SHARED, rewards=np.ones_like(SHARED.rewards))


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        (SHARED, {}),
        (DISJOINT, {"prior": 2.0}),
        (ONES, {"prior": 100.0}),
        slow(SHARED, {"prior": 1.0}),
        slow(DISJOINT, {}),
        slow(LARGE, {}),
        slow(scaled(SHARED, 30.0), {"prior": 30.0}),
        slow(scaled(SHARED, 100.0), {}),
        slow(scaled(DISJOINT, 0.01), {}),
    ],
)
def test_the_mode_of_a_logistic_posterior_is_followed_in_every_round(
    data: Problem, settings: dict[str, float]
) -> None:
    """θ̂ to 0.01 of a posterior's standard deviation, H to e^±DRIFT in every direction."""
    policy = AGENTS["laplace-ts"].build({**settings, "noise": 1.0})
    x, r = data.played, data.rewards.astype(np.float64)
    for t, state in enumerate(states(policy, data)):
        if t >= 30 and t % 7:
            continue
        theta, h = mode(x[: t + 1], r[: t + 1], float(policy.precision(state)))
        mean, lower, variance = policy.estimate(state)
        error = np.asarray(mean, np.float64).reshape(-1) - theta
        assert error @ h @ error < 0.01**2, f"round {t}"
        values = np.linalg.eigvals(np.linalg.solve(h, dense(np.asarray(lower)))).real
        assert np.abs(np.log(values)).max() < DRIFT + 0.02, f"round {t}"
        assert float(variance) == 1.0


#: One inner step is enough for the data.
MODELS: dict[str, dict[str, int]] = {"laplace-ts": {}, "lmcts": {"steps": 1}}


@pytest.mark.slow
def test_the_prior_of_a_logistic_model_is_that_of_the_mcmc_agents() -> None:
    agents = [AGENTS[name].build(values) for name, values in MODELS.items()]
    last = [states(agent, SHARED)[-1] for agent in agents]
    law = agents[1].coefficients(SHARED.spec, last[1].scales)
    np.testing.assert_allclose(float(agents[0].precision(last[0])), 2.0 * law.rho, rtol=1e-6)


def test_symmetric_data_have_their_mode_at_zero() -> None:
    """Every x once with each reward: θ̂ = 0, where H = I/s² + Σ x xᵀ/4."""
    half = problem(Spec(arms=2, dim=3, shared=True, rewards="bernoulli"), 20)
    both = half.taking(np.repeat(np.arange(20), 2))
    data = dataclasses.replace(both, rewards=np.tile([0.0, 1.0], 20).astype(np.float32))
    policy = AGENTS["laplace-ts"].build({"prior": 0.5, "noise": 1.0})
    state = states(policy, data)[-1]
    mean = policy.estimate(state).mean
    np.testing.assert_allclose(mean, 0.0, atol=1e-5)
    got = hessian(state.rows, policy.precision(state), jnp.zeros_like(mean))
    h = 4.0 * np.eye(3) + data.played.T @ data.played / 4.0
    np.testing.assert_allclose(got[:, :, 0], h, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("told", [{"noise": 0.5, "prior": 2.0}, {}])
def test_with_a_squared_loss_the_estimate_is_the_exact_posterior(
    shared: bool, told: dict[str, float]
) -> None:
    data = problem(Spec(arms=3, dim=3, shared=shared), 40)
    policy = AGENTS["laplace-ts"].build(told)
    state = states(policy, data)[-1]
    mean, lower, variance = policy.estimate(state)
    x, r = data.played, data.rewards.astype(np.float64)
    ratio = 0.25 / 4.0
    if not told:
        ratio = float(state.learned.scales.noise / state.learned.scales.prior)
    v = ratio * np.eye(x.shape[1]) + x.T @ x
    theta = np.linalg.solve(v, x.T @ r)
    np.testing.assert_allclose(np.asarray(mean).reshape(-1), theta, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(dense(np.asarray(lower)), v, rtol=2e-4, atol=2e-4)
    left = 0.25 if told else (r @ r - r @ x @ theta) / len(r)
    np.testing.assert_allclose(float(variance), left, rtol=1e-3)


def test_expected_rewards_are_probabilities_where_rewards_are_bernoulli() -> None:
    policy = AGENTS["laplace-ts"].build()
    state = states(policy, SHARED)[-1]
    assert isinstance(state, FittedState)
    context = jnp.asarray(SHARED.contexts[0])
    scores = np.asarray(policy.estimate(state).mean)[:, 0] @ context
    want = 1.0 / (1.0 + np.exp(-scores))
    np.testing.assert_allclose(policy.mean_rewards(state, context), want, rtol=1e-5)
