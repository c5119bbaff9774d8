"""What agents that learn noise and prior should believe and draw, in plain NumPy."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from proofs.levels import Check, close, generator_for, key_for, share_is
from rounds import drawn
from scipy import stats

from feelgood import AGENTS, Policy, Spec
from feelgood.numerics import chi_square as chi_square_module
from feelgood.targets.scales import EM_STEPS, FIRST_NOISE, due

DISJOINT, SHARED = Spec(arms=3, dim=2), Spec(arms=4, dim=3, shared=True)
SPECS = {"disjoint": DISJOINT, "shared": SHARED}
ROUNDS, DRAWS = 24, 20_000
QUANTILES = (0.02, 0.2, 0.5, 0.8, 0.98)


class Sums(NamedTuple):
    """Σ x xᵀ and Σ r x of every block, Σ r² and the number of rewards."""

    gram: np.ndarray
    moment: np.ndarray
    squares: float
    count: int


def played(spec: Spec, rounds: int = ROUNDS, scale: float = 1.0) -> list[tuple[Any, int, float]]:
    """Contexts, arms and rewards of a linear model with noise 0.4."""
    rng = generator_for(f"learned, {spec.shared}")
    theta = rng.normal(size=(spec.dim, spec.blocks))
    rows = []
    for _ in range(rounds):
        context = rng.normal(size=spec.context_shape).astype(np.float32)
        arm = int(rng.integers(spec.arms))
        x, block = (context[:, arm], 0) if spec.shared else (context, arm)
        reward = np.float32(scale * (x @ theta[:, block] + 0.4 * rng.normal()))
        rows.append((context, arm, reward))
    return rows


def sums_of(spec: Spec, rows: list[tuple[Any, int, float]]) -> Sums:
    """The sums in float64."""
    gram = np.zeros((spec.blocks, spec.dim, spec.dim))
    moment, squares = np.zeros((spec.blocks, spec.dim)), 0.0
    for context, arm, reward in rows:
        x, block = (context[:, arm], 0) if spec.shared else (context, arm)
        gram[block] += np.outer(x, x).astype(np.float64)
        moment[block] += float(reward) * x.astype(np.float64)
        squares += float(reward) ** 2
    return Sums(gram, moment, squares, len(rows))


def after(policy: Policy, spec: Spec, rows: list[tuple[Any, int, float]]) -> Any:
    """The agent's state after these rounds."""
    state = policy.reserve(policy.init(jax.random.key(0), spec), len(rows))

    # A function of its own: a broken library (`test_mutants`) must not meet an older program.
    @eqx.filter_jit
    def update(*args: Any) -> Any:
        return policy.update(*args)

    for context, arm, reward in rows:
        state = update(state, jnp.asarray(context), jnp.asarray(arm), jnp.asarray(reward))
    return state


def expected_scales(spec: Spec, rows: list[tuple[Any, int, float]]) -> tuple[float, float]:
    """σ² and s² after these rounds, by the formulas of `feelgood.targets.scales`."""
    noise = prior = 1.0
    parameters = spec.parameters
    for n in range(1, len(rows) + 1):
        if not due(jnp.asarray(n)):
            continue
        gram, moment, squares, _ = sums_of(spec, rows[:n])
        signal = squares / np.trace(gram, axis1=1, axis2=2).sum()
        if n == 1:
            noise, prior = FIRST_NOISE * squares, signal
        for _ in range(EM_STEPS):
            inverse = np.linalg.inv(gram + noise / prior * np.eye(spec.dim))
            mean = np.einsum("bij,bj->bi", inverse, moment)
            trace = np.trace(inverse, axis1=1, axis2=2).sum()
            residual = squares - 2.0 * (mean * moment).sum()
            residual += np.einsum("bi,bij,bj->", mean, gram, mean)
            gamma = parameters - noise / prior * trace
            better = (residual + noise * gamma) / n
            prior = ((mean**2).sum() + noise * trace + signal) / (parameters + 1)
            noise = better
    return noise, prior


def scale_checks(name: str) -> list[Check]:
    """Learned noise and prior of an agent against the formulas, to a thousandth."""
    checks = []
    for label, spec in SPECS.items():
        rows = played(spec)
        state = after(AGENTS[name].build(), spec, rows)
        scales = state.scales if hasattr(state, "scales") else state.learned.scales
        noise, prior = expected_scales(spec, rows)
        checks.append(close(f"{name}, noise, {label}", scales.noise / noise, 1.0, 1e-3))
        checks.append(close(f"{name}, prior, {label}", scales.prior / prior, 1.0, 1e-3))
    return checks


def student_checks(name: str) -> list[Check]:
    """Draws with learned noise have the Student-t law of the normal–inverse-gamma posterior.

    With ρ the ratio of the scales, V = ρI + Σ x xᵀ, μ = V⁻¹b and B = Σ r² − bᵀV⁻¹b over n rewards,
    every coordinate of Lᵀ(θ − μ)/√(τB/n) is t with n degrees of freedom. The mean of all their
    squares is F(parameters, n): it tells one σ² for all blocks from one per coordinate.
    """
    checks = []
    for label, spec in SPECS.items():
        for tau, rounds in ((1.0, ROUNDS), (0.5, 2)):
            policy = AGENTS[name].build({"temperature": tau})
            rows = played(spec, rounds)
            state = after(policy, spec, rows)
            scales = state.learned.scales
            gram, moment, squares, n = sums_of(spec, rows)
            precision = gram + float(scales.noise / scales.prior) * np.eye(spec.dim)
            mean = np.linalg.solve(precision, moment[..., None])[..., 0]
            left = squares - (mean * moment).sum()
            keys = jax.random.split(key_for(f"student, {name}, {label}, {tau}"), DRAWS)
            theta = jax.vmap(lambda k, p=policy, s=spec, x=state: drawn(p, s, k, x).theta)(keys)
            offset = np.asarray(theta, np.float64).transpose(0, 2, 1) - mean
            white = np.einsum("bji,nbj->nbi", np.linalg.cholesky(precision), offset)
            white = white.reshape(DRAWS, -1) / np.sqrt(tau * left / n)
            told = f"{name}, {label}, temperature {tau}"
            for q in QUANTILES:
                edge = stats.t.ppf(q, n)
                checks += [
                    share_is(f"{told}, coordinate {i} below its {q} quantile", column < edge, q)
                    for i, column in enumerate(white.T)
                ]
                radius = (white**2).mean(axis=1)
                hits = radius < stats.f.ppf(q, spec.parameters, n)
                checks.append(share_is(f"{told}, radius below its {q} quantile", hits, q))
    return checks


def chi_square_checks(freedom: str) -> list[Check]:
    """χ² variates by their quantiles."""
    normals = jax.random.normal(
        key_for(f"chi-square, {freedom}"), (chi_square_module.NORMALS, 10 * DRAWS)
    )
    values = np.asarray(
        chi_square_module.chi_square(normals, jnp.full(10 * DRAWS, float(freedom))), np.float64
    )
    levels = (0.001, 0.01, *QUANTILES, 0.99, 0.999)
    return [
        share_is(
            f"χ²_{freedom} below its {q} quantile", values < stats.chi2.ppf(q, float(freedom)), q
        )
        for q in levels
    ]
