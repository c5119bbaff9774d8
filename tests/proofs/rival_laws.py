"""The laws of draws around an estimate: comparisons that proofs and mutants share."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from proofs.levels import Check, close, key_for, law_is_normal, mean_is
from rounds import drawn
from scipy import special
from taught import SPECS, Taught, posterior, taught, theta_of

from feelgood import AGENTS
from feelgood.numerics.noise import round_noise

NOISE, PRIOR, DRAWS = 0.5, 2.0, 4_000


def draws_of(seen: Taught, label: str, count: int = DRAWS) -> np.ndarray:
    """Independent draws with the same data, [count, parameters]."""

    def one(key: Any) -> Any:
        return drawn(seen.policy, seen.spec, key, seen.state).theta

    thetas = jax.jit(jax.vmap(one))(jax.random.split(key_for(label), count))
    return np.stack([theta_of(theta) for theta in np.asarray(thetas)])


def wide_checks(agent: str, problem: str, variance: float = 1.0, **settings: Any) -> list[Check]:
    """Draws are N(θ̂, variance · H⁻¹) with the posterior's own θ̂ and H, noise and prior told."""
    seen = taught(agent, SPECS[problem], noise=NOISE, prior=PRIOR, **settings)
    label = f"{agent}, {problem}, {settings}"
    law = posterior(seen, NOISE, PRIOR)
    return law_is_normal(
        label, draws_of(seen, label), law.mean, variance * np.linalg.inv(law.precision)
    )


def slope_checks(problem: str, rounds: int, temperature: float) -> list[Check]:
    """Of EVILL's draws, ∇L whitened by the root of the agent's own H, and its H against NumPy's."""
    label = f"evill, {problem}, {rounds} rounds"
    told = {"noise": NOISE, "prior": PRIOR, "temperature": temperature}
    seen = taught("evill", SPECS[problem], rounds=rounds, **told)
    thetas = draws_of(seen, label)
    errors = special.expit(thetas @ seen.design.T) - seen.rewards
    slopes = errors @ seen.design + thetas / PRIOR**2
    root = np.asarray(seen.state.fit.lower, np.float64)  # [dim, dim, blocks]
    size = seen.spec.parameters
    matrix = np.zeros((size, size))
    for block in range(root.shape[2]):
        part = slice(block * len(root), (block + 1) * len(root))
        matrix[part, part] = root[:, :, block] @ root[:, :, block].T
    spread = np.linalg.eigvals(np.linalg.solve(posterior(seen, NOISE, PRIOR).precision, matrix))
    return [
        close(f"{label}, H", np.log(spread.real), 0.0, tolerance=0.25),
        *law_is_normal(label, slopes, np.zeros(size), temperature * matrix),
    ]


def ensembles(problem: str, members: int, chains: int, label: str) -> tuple[np.ndarray, Taught]:
    """One draw of each of many ensembles that saw the same rounds, [chains, parameters].

    The rounds are those of `taught`: the arms do not depend on the ensembles. They are so few that
    the prior matters as much as the data.
    """
    spec = SPECS[problem]
    seen = taught("lints", spec, rounds=8, noise=NOISE, prior=NOISE)
    policy = AGENTS["ensemble++"].build({"noise": NOISE, "prior": NOISE, "members": members})
    needs = policy.needs(spec)

    def one(key: Any) -> Any:
        first, *others = jax.random.split(key, len(seen.rewards) + 2)
        state = policy.init(first, spec)

        def learn(state: Any, given: Any) -> tuple[Any, None]:
            key, *now = given
            return policy.update(policy.draw(round_noise(key, needs).draw, state), *now), None

        rounds = (jnp.stack(others[:-1]), *map(jnp.asarray, seen.rounds))
        state = jax.lax.scan(learn, state, rounds)[0]
        return policy.draw(round_noise(others[-1], needs).draw, state).theta

    thetas = jax.jit(jax.vmap(one))(jax.random.split(key_for(label), chains))
    return np.stack([theta_of(theta) for theta in np.asarray(thetas)]), seen


def member_checks(problem: str, members: int, chains: int = DRAWS) -> list[Check]:
    """A draw has the posterior's mean and covariance over all ensembles, though it is not normal.

    Given A it is N(μ, AAᵀ), and E AAᵀ = Σ whatever the number of members.
    """
    label = f"ensemble++, {problem}, {members} members"
    thetas, seen = ensembles(problem, members, chains, label)
    law = posterior(seen, NOISE, NOISE)
    white = (thetas - law.mean) @ np.linalg.cholesky(law.precision)
    checks = [mean_is(f"{label}, mean {i}", column, 0.0) for i, column in enumerate(white.T)]
    for i, j in itertools.combinations_with_replacement(range(white.shape[1]), 2):
        product = white[:, i] * white[:, j]
        checks.append(mean_is(f"{label}, covariance {i} {j}", product, float(i == j)))
    return checks


def ensemble_checks(members: int) -> list[Check]:
    """A large ensemble's draws are normal around the posterior's mean with its covariance."""
    label = f"ensemble++ with {members} members"
    thetas, seen = ensembles("disjoint", members, 500, label)
    law = posterior(seen, NOISE, NOISE)
    return law_is_normal(label, thetas, law.mean, np.linalg.inv(law.precision))
