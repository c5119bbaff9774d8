"""Draws for logistic models: Pólya–Gamma variates, their Gibbs sampler, Laplace's law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from proofs import levels
from proofs.laws import two_dimensional
from proofs.levels import require
from proofs.logistic_laws import PRIOR, gibbs_checks, normal_checks, taught, variate_checks
from proofs.targets import agent, flat, learned, problem, quick_jit, run_chains, widened

from feelgood import AGENTS, Spec
from feelgood.numerics.polya_gamma import polya_gamma


@pytest.mark.parametrize("c", [0.0, 0.3, 1.0, 2.0, 3.12, 3.13, 5.0, 12.0, 60.0])
def test_polya_gamma_variates(c: float) -> None:
    """On both sides of 3.125, where the envelope changes."""
    require(variate_checks(c, f"PG(1, {c})"))


@pytest.mark.slow
def test_a_variate_depends_on_its_own_number_alone() -> None:
    """Other neighbours, and fewer of them."""
    key, c = jax.random.key(levels.SEED), jnp.linspace(-8.0, 8.0, 64)
    drawn = polya_gamma(key, c)
    np.testing.assert_array_equal(polya_gamma(key, c[:20]), drawn[:20])
    np.testing.assert_array_equal(polya_gamma(key, c.at[32:].set(0.0))[:32], drawn[:32])


@pytest.mark.parametrize("shared", slow_but((True,), (False, True)))
def test_the_gibbs_sampler_has_the_law_of_the_posterior(shared: bool) -> None:
    require(gibbs_checks(f"pg-ts, shared {shared}", shared))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rewards", ["squared", "bernoulli"])
def test_laplace_draws_are_normal(shared: bool, rewards: str) -> None:
    data = problem(Spec(arms=2, dim=2, shared=shared, rewards=rewards), 30)
    require(normal_checks(data, f"laplace-ts, shared {shared}, {rewards}"))


@pytest.mark.slow
def test_the_gibbs_sampler_agrees_with_hamiltonian_chains_in_many_dimensions() -> None:
    """Means and second moments of 12 parameters, of many chains of each kind."""
    data, chains = problem(Spec(arms=3, dim=12, shared=True, rewards="bernoulli"), 120), 2048
    label = "pg-ts and hmcts"
    policy = AGENTS["pg-ts"].build({"prior": PRIOR, "noise": 1.0, "steps": 25})
    state = taught(policy, data, chains)
    keys = jax.random.split(levels.key_for(f"{label}, one"), chains)
    one = flat(quick_jit(lambda p, k, s: p.draw(k, s))(policy, keys, state).theta)
    hmc = agent("hmcts", beta=1.0, eta=1.0, rho=0.5 / PRIOR**2, steps=60, leapfrog=5, step=0.6)
    start = widened(hmc, learned(hmc, data, 1), chains)
    other = run_chains(hmc, start, levels.key_for(f"{label}, other"), 3)
    assert other.acceptance > 0.6
    checks = []
    for i in range(data.spec.parameters):
        for j in range(-1, i + 1):
            a, b = (x[:, i] * (1.0 if j < 0 else x[:, j]) for x in (one, other.theta))
            z = (a.mean() - b.mean()) / np.sqrt((a.var() + b.var()) / chains)
            checks.append(levels.normal(f"{label}, moment {i}, {j}", float(z)))
    require(checks)


def test_with_a_squared_loss_the_gibbs_agent_is_that_of_laplace() -> None:
    data = two_dimensional(shared=True, bernoulli=False)
    agents = [AGENTS[name].build({"temperature": 0.5}) for name in ("pg-ts", "laplace-ts")]
    normals = jax.random.normal(jax.random.key(1), (2, 3))
    drawn = [p.draw(normals, taught(p, data, 3)).theta for p in agents]
    np.testing.assert_array_equal(*drawn)
