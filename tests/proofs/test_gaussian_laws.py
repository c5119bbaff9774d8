"""On the linear-Gaussian target every plain agent of the grammar has its exact stationary law.

Adjusted kernels: the posterior. Unadjusted ones: their own law at the step they take, from the
discrete Lyapunov equation. SVRG: the moments that its recursion has, batches included.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from proofs.laws import Gaussian, gaussian_checks, proof_agent
from proofs.levels import require
from proofs.targets import PLAIN, Problem, kinds_of, problem

from feelgood import Spec
from feelgood.agents.thompson import Thompson

DISJOINT = problem(Spec(arms=2, dim=3), 40)
LARGE = problem(Spec(arms=3, dim=12, shared=True), 60)
SHARED = problem(Spec(arms=3, dim=3, shared=True), 40)


def in_absolute_units(name: str, data: Problem) -> Thompson:
    """The agent with a constant step as large as the curvature allows."""
    relative = proof_agent(name, steps=30)
    target = Gaussian.of(relative, data)
    curvature = float(
        np.max(np.linalg.eigvals(np.linalg.solve(target.metric, target.hessian)).real)
    )
    step = float(relative.kernel.step_size(relative.step, jnp.float32(curvature), relative.beta))
    gamma = 0.8 * curvature**0.5
    return proof_agent(name, steps=30, schedule="constant", step=step, gamma=gamma)


# Quick: every kernel, and one with a preconditioner.
@pytest.mark.parametrize(
    "name", slow_but([n for n in PLAIN if n == "plmcts" or not n.startswith("p")], PLAIN)
)
def test_one_parameter_block_an_arm(name: str) -> None:
    require(gaussian_checks(proof_agent(name, steps=30), DISJOINT, f"{name}, disjoint"))


# Quick: with and without a filter and a preconditioner.
@pytest.mark.parametrize("name", covering(PLAIN, kinds_of))
def test_shared_parameters_and_a_constant_step(name: str) -> None:
    require(gaussian_checks(in_absolute_units(name, SHARED), SHARED, f"{name}, shared"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in PLAIN if ("preconditioned", True) in kinds_of(n)])
def test_preconditioners_of_many_dimensions(name: str) -> None:
    """In twelve dimensions, after sixty updates of the preconditioner."""
    policy = proof_agent(name, steps=40)
    require(gaussian_checks(policy, LARGE, f"{name}, large", chains=8192))
