"""vits: the posterior itself for linear models, the nearest normal law for logistic ones."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from proofs.levels import require
from proofs.logistic_laws import settled, taught, variational_checks
from proofs.targets import problem, quick_jit
from scipy import optimize

from feelgood import AGENTS, Spec
from feelgood.agents.vits import Variational, flow
from feelgood.numerics import lanes
from feelgood.targets.sums import frobenius


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "told", [pytest.param({"noise": 0.5, "prior": 2.0}, marks=pytest.mark.slow), {}]
)
def test_the_law_of_a_linear_model_is_the_posterior(shared: bool, told: dict[str, float]) -> None:
    require(variational_checks(shared, told, f"vits, shared {shared}, {told}"))


def nearest_normal(x: np.ndarray, r: np.ndarray, precision: float) -> tuple[float, float]:
    """m and b of the N(m, b²) nearest to a logistic posterior of one parameter, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def unmet(values: np.ndarray) -> np.ndarray:
        mean, deviation = values[0], np.exp(values[1])
        theta = mean + deviation * nodes
        chance = 1.0 / (1.0 + np.exp(-np.outer(theta, x)))
        slope = (chance - r) @ x + precision * theta
        curvature = (chance * (1.0 - chance)) @ x**2 + precision
        return np.array([weights @ slope, (weights @ curvature) * deviation**2 - 1.0])

    mean, log_deviation = optimize.fsolve(unmet, np.zeros(2), xtol=1e-12)
    return float(mean), float(np.exp(log_deviation))


@pytest.mark.slow
def test_the_law_of_a_logistic_model_is_the_nearest_normal() -> None:
    """E ∇U = 0 and (BBᵀ)⁻¹ = E ∇²U, on average over many chains, with small steps.

    The curvature is a fifth of its bound, so a step of 0.05 forgets in 100 draws, of which there
    are 2,000. It leaves a bias of about 0.01, which is within the tolerances of 0.03. The law of
    Laplace is farther away than that.
    """
    data = problem(Spec(arms=2, dim=1, rewards="bernoulli"), 8)
    values = {"prior": 3.0, "noise": 1.0}
    policy = AGENTS["vits"].build({**values, "step": 0.05, "steps": 1})
    state = settled(policy, taught(policy, data, 512), 2000)
    laplace = AGENTS["laplace-ts"].build(values)
    mode, lower, _ = laplace.estimate(taught(laplace, data, 1))
    away = 0.0
    for a in range(2):
        mine = data.arms == a
        x, r = data.contexts[mine, 0].astype(np.float64), data.rewards[mine]
        mean, deviation = nearest_normal(x, r, 1.0 / 9.0)
        means, roots = (np.asarray(y)[..., a, :] for y in (state.law.mean, state.law.root))
        assert abs(means.mean() - mean) < 0.03 * deviation
        assert abs(np.mean(roots**2) / deviation**2 - 1.0) < 0.03
        away = max(away, abs(float(mode[0, a, 0]) - mean) / deviation)
        away = max(away, abs(float(lower[0, 0, a, 0]) ** -2 / deviation**2 - 1.0))
    assert away > 0.1


def test_the_flow_survives_a_sudden_change() -> None:
    """Curvatures a thousand times larger, and smaller again, with the largest step allowed."""
    eye = jnp.eye(3)[:, :, None]
    law = Variational(jnp.zeros((3, 1)), eye, eye)
    for scale in (1000.0, 0.001, 1.0):
        curvature = scale * jnp.asarray([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
        curvature = curvature[:, :, None]

        def slope(law: Variational, _: Any, curvature: Any = curvature) -> Any:
            return lanes.matvec(curvature, law.mean - 1.0)

        law = flow(law, curvature, frobenius(curvature), slope, jnp.asarray(0.99), jnp.arange(400))
        got = law.root[..., 0] @ law.root[..., 0].T @ curvature[..., 0]
        np.testing.assert_allclose(got, np.eye(3), atol=2e-3)
        np.testing.assert_allclose(law.mean, 1.0, atol=1e-3)


def test_lost_rounds_show() -> None:
    policy = AGENTS["vits"].build()
    spec = Spec(arms=2, dim=2, shared=True, rewards="bernoulli")
    state = policy.init(jax.random.key(0), spec)
    state = eqx.tree_at(lambda s: s.model.count, state, jnp.asarray(10_000, jnp.int32))
    update = quick_jit(lambda p, s: p.update(s, jnp.ones((2, 2)), jnp.asarray(0), jnp.asarray(1.0)))
    assert not policy.report(update(policy, state)).finite
