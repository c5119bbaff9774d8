"""Agents that have seen some made-up rounds, and the same rounds for NumPy."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from grids import slow_but
from scipy import optimize, special

from feelgood import AGENTS, Policy, Spec

DISJOINT, SHARED = Spec(arms=3, dim=2), Spec(arms=4, dim=3, shared=True)
BERNOULLI = Spec(arms=3, dim=2, rewards="bernoulli")
BERNOULLI_SHARED = Spec(arms=4, dim=3, shared=True, rewards="bernoulli")
SPECS = {
    "disjoint": DISJOINT,
    "shared": SHARED,
    "disjoint, Bernoulli": BERNOULLI,
    "shared, Bernoulli": BERNOULLI_SHARED,
}
#: All of them; quick are two that have both kinds of context and of rewards.
EVERY_SPEC = pytest.mark.parametrize("name", slow_but(["disjoint", "shared, Bernoulli"], SPECS))


# Jitted here, so that agents of one shape share their programs.
@eqx.filter_jit
def _laws(policy: Policy, spec: Spec, state: Any, contexts: jax.Array) -> Any:
    pmf = policy.hints(spec).pmf
    assert pmf is not None
    return jax.vmap(lambda context: pmf(state, context))(contexts)


@eqx.filter_jit
def _learned(policy: Policy, spec: Spec, *seen: jax.Array) -> Any:
    state = policy.reserve(policy.init(jax.random.key(0), spec), max(len(seen[0]), 1))
    return jax.lax.scan(lambda state, now: (policy.update(state, *now), None), state, seen)[0]


class Taught(NamedTuple):
    """An agent's state after some rounds, and the features and rewards of those rounds."""

    policy: Policy
    state: Any
    spec: Spec
    #: [rounds, parameters] and [rounds].
    design: np.ndarray
    rewards: np.ndarray
    #: Contexts, arms and rewards as `update` takes them.
    rounds: tuple[np.ndarray, np.ndarray, np.ndarray]

    def laws(self, contexts: np.ndarray) -> np.ndarray:
        """What the agent says of its action probabilities, [contexts, arms]."""
        law = _laws(self.policy, self.spec, self.state, jnp.asarray(contexts))
        return np.asarray(law, np.float64)


def stacked(spec: Spec, context: np.ndarray, arm: int) -> np.ndarray:
    """The feature of an arm with zeros for the parameters of all others."""
    if spec.shared:
        return np.asarray(context[:, arm], np.float64)
    out = np.zeros((spec.arms, spec.dim))
    out[arm] = context
    return out.ravel()


def features(spec: Spec, context: np.ndarray) -> np.ndarray:
    """The features of all arms, [arms, parameters]."""
    return np.stack([stacked(spec, context, arm) for arm in range(spec.arms)])


def contexts(spec: Spec, count: int, seed: int = 1) -> np.ndarray:
    """So many contexts in float32."""
    shape = (count, *spec.context_shape)
    return np.random.default_rng([seed, count]).normal(size=shape).astype(np.float32)


def taught(
    agent: str | Policy,
    spec: Spec,
    rounds: int = 40,
    seed: int = 0,
    scale: float = 1.0,
    **settings: Any,
) -> Taught:
    """An agent after uniformly chosen arms; rewards are multiplied by `scale`."""
    policy = AGENTS[agent].build(settings)
    rng = np.random.default_rng([seed, spec.arms, spec.dim, rounds])
    truth = rng.normal(size=spec.parameters)
    design, rewards = np.zeros((rounds, spec.parameters)), np.zeros(rounds)
    shown, arms = contexts(spec, rounds, seed), rng.integers(spec.arms, size=rounds)
    for t in range(rounds):
        design[t] = stacked(spec, shown[t], arms[t])
        score = design[t] @ truth
        if spec.rewards == "bernoulli":
            rewards[t] = float(rng.random() < special.expit(score))
        else:
            rewards[t] = np.float32(scale * np.float32(score + 0.5 * rng.normal()))
    seen = (shown, arms.astype(np.int32), rewards.astype(np.float32))
    state = _learned(policy, spec, *map(jnp.asarray, seen))
    return Taught(policy, state, spec, design, rewards, seen)


def theta_of(state_theta: Any) -> np.ndarray:
    """Parameters [dim, blocks] of the library as NumPy's stacked vector."""
    return np.asarray(state_theta, np.float64).T.ravel()


class Posterior(NamedTuple):
    """The mode of the exact posterior and the precision there."""

    mean: np.ndarray
    precision: np.ndarray


def posterior(told: Taught, noise: float, prior: float) -> Posterior:
    """In float64, with noise and prior told: by the normal equations, or by scipy's minimiser."""
    x, r = told.design, told.rewards
    eye = np.eye(x.shape[1]) / prior**2
    if told.spec.rewards != "bernoulli":
        precision = x.T @ x / noise**2 + eye
        return Posterior(np.linalg.solve(precision, x.T @ r / noise**2), precision)

    def energy(theta: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ theta
        value = np.sum(np.logaddexp(0.0, z) - r * z) + 0.5 * theta @ eye @ theta
        return float(value), x.T @ (special.expit(z) - r) + eye @ theta

    start = np.zeros(x.shape[1])
    mean = optimize.minimize(energy, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    slope = special.expit(x @ mean) * special.expit(-x @ mean)
    return Posterior(mean, x.T @ (slope[:, None] * x) + eye)
