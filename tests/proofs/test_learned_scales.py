"""Agents that learn noise and prior: the estimates, the law of the draws, and the units."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from proofs.learned import (
    DISJOINT,
    SHARED,
    after,
    chi_square_checks,
    played,
    scale_checks,
    student_checks,
    sums_of,
)
from proofs.levels import Check, close, require
from rounds import drawn
from scipy import optimize

from feelgood import AGENTS, Spec
from feelgood.targets.scales import ScaleModel, Scales
from feelgood.targets.sums import Stats

MCMC = ("lmcts", "malats", "hmcts", "plmcts", "ulmcts", "fglmcts", "pfghmcts")


@pytest.mark.parametrize("freedom", slow_but(["1", "10"], ["1", "2", "3", "10", "1000"]))
def test_chi_square(freedom: str) -> None:
    require(chi_square_checks(freedom))


@pytest.mark.parametrize("name", slow_but(["lmcts"], ["lints", "lmcts", "pfghmcts"]))
def test_the_estimates_are_the_formulas(name: str) -> None:
    require(scale_checks(name))


def test_lints_draws_from_the_normal_inverse_gamma_posterior() -> None:
    require(student_checks("lints"))


def evidence(log_scales: np.ndarray, spec: Spec, rows: list[tuple[Any, int, float]]) -> float:
    """−log p(rewards | σ², s²), from the rewards' own covariance: no formula of the library."""
    noise, prior = np.exp(log_scales)
    features = np.zeros((len(rows), spec.blocks * spec.dim))
    for i, (context, arm, _) in enumerate(rows):
        x, block = (context[:, arm], 0) if spec.shared else (context, arm)
        features[i, block * spec.dim : (block + 1) * spec.dim] = x
    rewards = np.array([reward for _, _, reward in rows], np.float64)
    covariance = noise * np.eye(len(rows)) + prior * features @ features.T
    _, log_det = np.linalg.slogdet(covariance)
    return float(0.5 * log_det + 0.5 * rewards @ np.linalg.solve(covariance, rewards))


@pytest.mark.slow
@pytest.mark.parametrize("spec", [DISJOINT, SHARED], ids=["disjoint", "shared"])
def test_the_estimates_go_to_the_largest_evidence(spec: Spec) -> None:
    """Many steps end where the evidence and one parameter more of size s₀ are most likely."""
    rows = played(spec, 200)
    gram, moment, squares, n = sums_of(spec, rows)
    signal = squares / np.trace(gram, axis1=1, axis2=2).sum()
    model = ScaleModel(noise=None, prior=None)
    stats = Stats(jnp.asarray(gram.transpose(1, 2, 0)), jnp.asarray(moment.T))
    scales = Scales(*(jnp.asarray(v, jnp.float32) for v in (squares, 1.0, 1.0, n)))
    step = jax.jit(lambda s: model.estimate(s, stats, jnp.asarray(n), jnp.asarray(False)))
    for _ in range(200):
        scales = step(scales)

    def objective(log_scales: np.ndarray) -> float:
        pull = 0.5 * log_scales[1] + 0.5 * signal * np.exp(-log_scales[1])
        return evidence(log_scales, spec, rows) + float(pull)

    best = np.exp(optimize.minimize(objective, np.zeros(2), method="Nelder-Mead", tol=1e-8).x)
    require(
        [
            close("noise at the largest evidence", scales.noise / best[0], 1.0, 2e-3),
            close("prior at the largest evidence", scales.prior / best[1], 1.0, 2e-3),
        ]
    )


@pytest.mark.parametrize("name", slow_but(["lmcts"], MCMC))
def test_mcmc_agents_have_the_target_of_what_they_learned(name: str) -> None:
    """From one state, the learning agent and one that is told its estimates draw the same."""
    spec = DISJOINT
    values = {"lam": 0.1} if "fg" in name else {}
    learning = AGENTS[name].build(values)
    state = after(learning, spec, played(spec))
    noise, prior = (float(np.sqrt(v)) for v in (state.scales.noise, state.scales.prior))
    telling = AGENTS[name].build({**values, "noise": noise, "prior": prior})
    key = jax.random.key(7)
    told = drawn(telling, spec, key, dataclasses.replace(state, scales=None))
    learned = drawn(learning, spec, key, state)
    width = float(jnp.std(learned.chain.theta))
    require(checked(name, learned.chain.theta, told.chain.theta, 1e-4 * width))


def checked(label: str, got: Any, want: Any, tolerance: float) -> list[Check]:
    return [close(label, got, want, tolerance)]


@pytest.mark.parametrize("name", slow_but(["lints"], ["lints", *MCMC[:5]]))
def test_units_of_the_rewards_do_not_matter(name: str) -> None:
    """A power of 2 scales every number exactly: the parameters are scaled, to the last bits."""
    spec = DISJOINT
    agent = AGENTS[name].build()
    states = [after(agent, spec, played(spec, scale=scale)) for scale in (1.0, 64.0)]
    key = jax.random.key(3)
    one, many = (agent.report(drawn(agent, spec, key, s)).parameters for s in states)
    assert one is not None and many is not None
    require(checked(name, many / 64.0, one, 1e-4 * float(jnp.std(one))))


@pytest.mark.parametrize("what", ["rewards", "contexts"])
def test_rewards_and_contexts_of_zero_teach_nothing_of_the_scales(what: str) -> None:
    """The first that is not 0 does, and nothing is divided by 0."""
    spec = DISJOINT
    none = np.float32(what != "rewards"), np.float32(what != "contexts")
    rows = [(none[1] * context, arm, none[0] * r) for context, arm, r in played(spec, 9)]
    for name in ("lints", "lmcts"):
        agent = AGENTS[name].build()
        state = after(agent, spec, rows)
        scales = state.scales if name == "lmcts" else state.learned.scales
        assert float(scales.noise) == float(scales.prior) == 1.0
        assert agent.report(drawn(agent, spec, jax.random.key(0), state)).finite
        state = after(agent, spec, [*rows, *played(spec, 2)])
        scales = state.scales if name == "lmcts" else state.learned.scales
        assert float(scales.noise) != 1.0
        assert agent.report(drawn(agent, spec, jax.random.key(0), state)).finite
