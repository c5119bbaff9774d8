"""The laws of the agents that know a posterior otherwise than by a ridge or by a kernel.

The checks are functions, so that the mutants meet exactly what the library meets.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from proofs import levels
from proofs.laws import quadrature, two_dimensional
from proofs.levels import Check
from proofs.targets import Formula, Problem, flat, problem, quick_jit, unflat, with_lanes

from feelgood import AGENTS, Spec
from feelgood.numerics import lanes
from feelgood.numerics.polya_gamma import polya_gamma

CHAINS, VARIATES = 16_384, 200_000
PRIOR = 1.3


# ---- Pólya–Gamma variates -------------------------------------------------------------------


def log_cosh(x: float) -> float:
    return float(np.logaddexp(x, -x) - np.log(2.0))


def transform(c: float, s: float) -> float:
    """E e^{−sω} = cosh(c/2)/cosh(√(c²/4 + s/2))."""
    return float(np.exp(log_cosh(0.5 * c) - log_cosh(np.sqrt(0.25 * c * c + 0.5 * s))))


def variate_moments(c: float) -> tuple[float, float]:
    """Mean and variance: tanh(c/2)/(2c) and (sinh c − c)/(4c³ cosh²(c/2)), or their limits at 0."""
    if c == 0.0:
        return 0.25, 1.0 / 24.0
    second = (np.sinh(c) - c) / (4.0 * c**3 * np.cosh(0.5 * c) ** 2)
    return float(np.tanh(0.5 * c) / (2.0 * c)), float(second)


def variate_checks(c: float, label: str) -> list[Check]:
    """Mean, variance and Laplace transform of PG(1, c), signs of c included."""
    signs = np.where(np.arange(VARIATES) % 2 == 0, 1.0, -1.0)
    argument = jnp.asarray(c * signs, jnp.float32)
    # Not the function itself: what was compiled for it would outlive a mutant.
    draw = jax.jit(lambda key, c: polya_gamma(key, c))  # noqa: PLW0108
    drawn = draw(levels.key_for(label), argument)
    samples = np.asarray(drawn, np.float64)
    mean, variance = variate_moments(c)
    checks = [
        levels.mean_is(f"{label}, mean", samples, mean, variance**0.5),
        levels.mean_is(f"{label}, variance", (samples - mean) ** 2, variance),
    ]
    for scale in (0.3, 1.0, 5.0):
        s = scale / mean
        first, second = transform(c, s), transform(c, 2.0 * s)
        spread = (second - first**2) ** 0.5
        text = f"{label}, transform at {s:.3g}"
        checks.append(levels.mean_is(text, np.exp(-s * samples), first, spread))
    return checks


# ---- agents ---------------------------------------------------------------------------------


def taught(policy: Any, data: Problem, chains: int) -> Any:
    """The state of so many equal chains after the data, with no more room than they need."""
    spec = with_lanes(data.spec, chains)

    @quick_jit
    def teach(policy: Any, rounds: tuple[Any, ...]) -> Any:
        state = policy.init(jax.random.split(jax.random.key(0), chains), spec)

        def one(t: Any, state: Any) -> Any:
            here = (x[t] for x in rounds)
            whole = (jnp.broadcast_to(x[..., None], (*x.shape, chains)) for x in here)
            return policy.update(state, *whole)

        return jax.lax.fori_loop(0, data.rounds, one, state)

    stored = tuple(map(jnp.asarray, (data.contexts, data.arms, data.rewards)))
    state = teach(policy, stored)
    if not hasattr(state, "rows"):
        return state

    def parts(state: Any) -> list[Any]:
        rows = state.rows
        return [x for x in (rows.contexts, rows.features, rows.arms, rows.rewards) if x is not None]

    return eqx.tree_at(parts, state, [x[..., : data.rounds] for x in parts(state)])


def gibbs_checks(label: str, shared: bool, draws: int = 24) -> list[Check]:
    """pg-ts has the law of the posterior on two parameters.

    Half of the chains start in it, which they must keep; the others start three times as wide, and
    must have forgotten it.
    """
    data = two_dimensional(shared, bernoulli=True)
    policy = AGENTS["pg-ts"].build({"prior": PRIOR, "noise": 1.0})
    law = quadrature(formula(data), 1.0)
    rng, half = levels.generator_for(label), CHAINS // 2
    mean, deviation = law.location()
    wide = mean + 3.0 * deviation * rng.normal(size=(half, 2))
    start = unflat(np.concatenate([law.draw(rng, half), wide]), data.spec)
    state = taught(policy, data, CHAINS)
    state = eqx.tree_at(lambda s: s.fit.theta, state, start)
    keys = jax.random.split(levels.key_for(label), (draws, CHAINS))

    @quick_jit
    def run(policy: Any, state: Any, keys: Any) -> Any:
        return jax.lax.scan(lambda s, k: (policy.draw(k, s), None), state, keys)[0]

    return law.checks(label, flat(run(policy, state, keys).theta))


@functools.cache
def formula(data: Problem) -> Formula:
    """Σℓ + ‖θ‖²/(2 prior²)."""
    return Formula(data, eta=1.0, rho=0.5 / PRIOR**2)


def normal_checks(data: Problem, label: str, temperature: float = 0.6) -> list[Check]:
    """laplace-ts draws from N(θ̂, τ H⁻¹), with θ̂ and H of its own estimate."""
    values = {"prior": PRIOR, "noise": 0.7, "temperature": temperature}
    policy = AGENTS["laplace-ts"].build(values)
    state = taught(policy, data, 1)
    mean, lower, variance = policy.estimate(state)
    blocks = [np.asarray(lower[:, :, a, 0], np.float64) for a in range(data.spec.blocks)]
    dim = data.spec.dim
    covariance = np.zeros((dim, data.spec.blocks, dim, data.spec.blocks))
    for a, block in enumerate(blocks):
        covariance[:, a, :, a] = temperature * float(variance[0]) * np.linalg.inv(block @ block.T)
    size = data.spec.parameters
    noise = lanes.normal(levels.key_for(label), size * CHAINS).reshape(CHAINS, size, 1)
    draw = jax.jit(jax.vmap(lambda z: policy.draw(z, state).theta))
    samples = flat(jnp.moveaxis(draw(noise)[..., 0], 0, -1))
    return levels.law_is_normal(label, samples, flat(mean)[0], covariance.reshape(size, size))


def settled(policy: Any, state: Any, draws: int) -> Any:
    """The state after so many draws without new data."""
    amount, chains = policy.needs(state.spec).draw, state.theta.shape[-1]

    @quick_jit
    def run(policy: Any, state: Any, keys: Any) -> Any:
        def one(state: Any, key: Any) -> Any:
            return policy.draw(jax.random.normal(key, (amount, chains)), state), None

        return jax.lax.scan(one, state, keys)[0]

    return run(policy, state, jax.random.split(levels.key_for("settled"), draws))


def variational_checks(shared: bool, told: dict[str, float], label: str) -> list[Check]:
    """vits on a linear model: mean, covariance and draws of N(V⁻¹b, σ²τV⁻¹)."""
    data = problem(Spec(arms=2, dim=3, shared=shared), 40)
    values = {**told, "temperature": 0.6}
    policy, exact = (AGENTS[name].build(values) for name in ("vits", "laplace-ts"))
    state = settled(policy, taught(policy, data, CHAINS // 4), 100)
    mean, lower, variance = (np.asarray(x) for x in exact.estimate(taught(exact, data, 1)))
    dim, blocks, size = data.spec.dim, data.spec.blocks, data.spec.parameters
    covariance = np.zeros((dim, blocks, dim, blocks))
    checks = [levels.close(f"{label}, mean", flat(state.law.mean)[0], flat(mean)[0], 1e-3)]
    for a in range(blocks):
        factor = lower[:, :, a, 0].astype(np.float64)
        precision = factor @ factor.T / (0.6 * variance[0])
        covariance[:, a, :, a] = np.linalg.inv(precision)
        root, inverse = (np.asarray(x, np.float64)[:, :, a, 0] for x in state.law[1:])
        checks += [
            levels.close(f"{label}, covariance", root @ root.T @ precision, np.eye(dim), 1e-3),
            levels.close(f"{label}, inverse", inverse @ root, np.eye(dim), 1e-3),
        ]
    whole = covariance.reshape(size, size)
    return checks + levels.law_is_normal(label, flat(state.theta), flat(mean)[0], whole)
