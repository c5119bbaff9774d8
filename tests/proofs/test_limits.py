"""Limits: no bonus, a sharp bonus, no temperature; and what a round takes over from the last."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import covering, slow_but
from proofs import levels
from proofs.caches import cache_checks
from proofs.laws import Gaussian, bonus_agent, proof_agent, two_dimensional
from proofs.levels import require
from proofs.targets import (
    PLAIN,
    WITH_BONUS,
    Formula,
    agent,
    flat,
    formula_of,
    kinds_of,
    learned,
    quick_jit,
    starting_at,
    strong,
)
from scipy import optimize

from feelgood import TESTBEDS, simulate
from feelgood.agents.thompson import Thompson
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood

ALL = PLAIN + WITH_BONUS
LINEAR = TESTBEDS["linear-6"].build({"arms": 3})
RUNS = 10


def equal_runs(one: Thompson, other: Thompson, label: str, rounds: int = 25) -> list[levels.Check]:
    """Both agents play the same arms on the same noise, in all but two of ten runs.

    The two programs may round differently, by some 1e-6 of a Metropolis ratio. A decision within
    that of its threshold falls differently in one run of a thousand or so; in three of ten, never.
    """
    seeds = [1000 * levels.SEED + i for i in range(RUNS)]
    curves = [simulate(LINEAR, p, rounds=rounds, seeds=seeds).curve[0] for p in (one, other)]
    differ = np.sum(np.max(np.abs(curves[0] - curves[1]), axis=1) > 1e-3)
    return [levels.close(f"{label}: runs that differ", differ, 0.0, 2.0)]


# Quick: the kernel whose force is frozen beside a bonus.
@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(("hmcts",), PLAIN))
def test_no_weight_equals_no_bonus(name: str) -> None:
    """The registry leaves a bonus of weight 0 out; here it is kept and must not matter."""
    plain = agent(name, steps=4, batch=4)
    weightless = dataclasses.replace(plain, bonus=FeelGood(lam=0.0, b=0.5))
    assert weightless.bonus is not None
    require(equal_runs(plain, weightless, name))


def test_the_registry_drops_a_bonus_without_weight() -> None:
    for name in WITH_BONUS:
        assert agent(name, lam=0.0).bonus is None
        assert agent(name, lam=0.1).bonus is not None


def test_sharp_smoothing_tends_to_the_hard_cap() -> None:
    """0 ≤ φ − φ_s ≤ log 2 / s, and the slopes agree away from the corner."""
    best = jnp.linspace(-3.0, 3.0, 1001)[None]
    hard = FeelGood(lam=1.0, b=0.5)
    for s in (1.0, 10.0, 1e3, 1e6):
        soft = SmoothedFeelGood(lam=1.0, b=0.5, s=s)
        gap = np.asarray(hard.phi(best) - soft.phi(best), np.float64)
        away = np.abs(np.asarray(best) - 0.5) > 20.0 / s
        slopes = np.asarray(hard.slope(best) - soft.slope(best))[away]
        require(
            [
                levels.close(
                    f"φ at s = {s}", gap, np.log(2.0) / (2.0 * s), np.log(2.0) / (2 * s) + 1e-6
                ),
                levels.close(f"φ' at s = {s}", np.append(slopes, 0.0), 0.0, 1e-6),
            ]
        )


@pytest.mark.slow
def test_sharp_smoothing_gives_the_same_run() -> None:
    hard = agent("fglmcts", lam=0.3, b=0.5, steps=4)
    soft = agent("sfglmcts", lam=0.3, b=0.5, s=1e6, steps=4)
    require(equal_runs(hard, soft, "s = 10⁶"))


# ---- no temperature -------------------------------------------------------------------------

COOLING = (1.0, 10.0, 100.0, 1e3, 1e4)


def mode_of(formula: Formula) -> tuple[np.ndarray, float]:
    """The global minimum of L, from many starts, without the library."""
    parameters = formula.problem.spec.parameters
    starts = 2.0 * np.random.default_rng(0).normal(size=(40, parameters))
    found = [
        optimize.minimize(
            lambda x: float(formula.value(x)),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000},
        )
        for start in starts[np.argsort(formula.value(starts))[:4]]
    ]
    best = min(found, key=lambda result: result.fun)
    return best.x, float(best.fun)


# Quick: with and without a filter, a preconditioner and each bonus.
@pytest.mark.parametrize("name", slow_but(("hmcts",), ALL))
def test_cold_chains_sit_at_the_mode(name: str) -> None:
    """Cooled down to β = 10⁴, every draw has L within 50/β of its minimum.

    In units of 1/β the excess is half a χ² variable of two degrees of freedom, or up to twice that
    for large unadjusted steps. So it exceeds 50 with probability e⁻²⁵ at most.
    """
    bernoulli = "sfg" in name
    data = two_dimensional(shared=bernoulli, bernoulli=bernoulli)
    policy = bonus_agent(name, data, lam=0.2, b=0.5, s=2.0, steps=60)
    formula = formula_of(policy, data)
    mode, lowest = mode_of(formula)
    rng = levels.generator_for(f"cold {name}")
    state = starting_at(learned(policy, data, 64), mode + rng.normal(size=(64, 2)))
    draw = quick_jit(lambda p, k, s: p.draw(k, s))
    for beta in COOLING:
        policy = eqx.tree_at(lambda p: p.beta, policy, jnp.asarray(beta))
        keys = jax.random.split(levels.key_for(f"cold {name} {beta}"), 64)
        state = draw(policy, keys, strong(state))
    rise = formula.value(flat(state.chain.theta)) - lowest
    require([levels.close(name, rise, 0.0, 50.0 / COOLING[-1])])


def test_the_mode_of_the_plain_target_is_the_ridge_estimate() -> None:
    """The independent minimiser and the closed form agree."""
    data = two_dimensional(shared=False, bernoulli=False)
    policy = proof_agent("lmcts")
    mode, _ = mode_of(formula_of(policy, data))
    require([levels.close("mode", mode, Gaussian.of(policy, data).mean, 1e-6)])


# ---- from round to round --------------------------------------------------------------------


# Quick: a kernel that caches a value, a gradient and a bonus; those of the quick mutants besides.
@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(("fghmcts",), ALL))
def test_what_a_chain_caches_is_of_the_data_so_far(name: str) -> None:
    data = two_dimensional(shared=False, bernoulli=False)
    policy = bonus_agent(name, data, b=0.5, s=2.0, steps=5)
    require(cache_checks(policy, data, f"cache {name}"))


@pytest.mark.parametrize("name", covering(PLAIN, kinds_of))
def test_chains_start_where_they_were(name: str) -> None:
    """With a tiny step a round ends where it began: the next one starts from there."""
    data = two_dimensional(shared=False, bernoulli=False)
    policy = proof_agent(name, step=1e-6, steps=3, schedule="constant")
    draw = quick_jit(policy.draw)
    state = draw(jax.random.key(levels.SEED), strong(learned(policy, data)))
    context = jnp.asarray(data.contexts[0])
    later = policy.update(state, context, jnp.asarray(0), jnp.asarray(1.0))
    np.testing.assert_array_equal(later.chain.theta, state.chain.theta)
    again = draw(jax.random.key(levels.SEED + 1), strong(later))
    np.testing.assert_allclose(again.chain.theta, state.chain.theta, atol=0.05)
