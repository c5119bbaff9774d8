"""The law that each kernel must have, and the checks that it has it.

The checks are functions of an agent, so that the mutants meet exactly what the real kernels meet.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from proofs import levels
from proofs.levels import Check
from proofs.targets import (
    SETTINGS,
    Formula,
    Problem,
    agent,
    formula_of,
    learned,
    problem,
    run_chains,
    starting_at,
    tuning_of,
)
from scipy import linalg

from feelgood import Spec
from feelgood.agents.thompson import Thompson, ThompsonState
from feelgood.samplers.blocks import Kernel
from feelgood.samplers.lmc import LMC
from feelgood.samplers.svrg import SVRGLMC
from feelgood.samplers.ulmc import ULMC

CHAINS = 32_768
#: Fewer where a step reads the history.
BONUS_CHAINS = 16_384
#: Large steps, in units of the curvature: their bias is large and the filter has work to do.
STEPS = {"LMC": 1.0, "MALA": 1.0, "HMC": 1.2, "ULMC": 0.8, "SVRGLMC": 0.4}


def proof_agent(name: str, **values: Any) -> Thompson:
    """The agent with the settings of the proofs and a large step."""
    kernel = type(agent(name).kernel).__name__
    large = {"step": STEPS[kernel]} if kernel in STEPS else {}
    return agent(name, **(SETTINGS | large | values))


# ---- the linear-Gaussian target -------------------------------------------------------------


def metric_of(policy: Thompson, data: Problem) -> np.ndarray:
    """V = λ_reg I + Σ x xᵀ, or the identity."""
    eye = np.eye(data.spec.parameters)
    if not policy.preconditioned:
        return eye
    return float(policy.lambda_reg) * eye + data.played.T @ data.played


@dataclasses.dataclass(frozen=True)
class Gaussian:
    """The plain squared loss: L(θ) = ½(θ − m)ᵀH(θ − m) + constant."""

    mean: np.ndarray
    hessian: np.ndarray
    metric: np.ndarray
    beta: float

    @classmethod
    def of(cls, policy: Thompson, data: Problem) -> "Gaussian":
        """From the formula of L."""
        x, eta, rho = data.played, float(policy.eta), float(policy.rho)
        hessian = 2.0 * eta * x.T @ x + 2.0 * rho * np.eye(x.shape[1])
        mean = np.linalg.solve(hessian, 2.0 * eta * x.T @ data.rewards.astype(np.float64))
        return cls(mean, hessian, metric_of(policy, data), float(policy.beta))

    @property
    def posterior(self) -> np.ndarray:
        """The covariance of exp(−βL)."""
        return np.linalg.inv(self.beta * self.hessian)


def by_parameter(value: Any, spec: Spec) -> np.ndarray:
    """A number, given once or once per block, as one number per parameter."""
    array = np.asarray(value, np.float64)
    if array.ndim > 1:  # the same for all chains
        array = array[:, 0]
    return np.broadcast_to(array, (spec.dim, spec.blocks)).reshape(-1)


@dataclasses.dataclass(frozen=True)
class Linear:
    """u ← A u + N(0, Q) around the mean: what a kernel does to a Gaussian target."""

    transition: np.ndarray
    noise: np.ndarray

    def stationary(self) -> np.ndarray:
        """The covariance S = A S Aᵀ + Q."""
        assert np.max(np.abs(np.linalg.eigvals(self.transition))) < 1.0
        return linalg.solve_discrete_lyapunov(self.transition, self.noise)

    def forgets(self, steps: int) -> float:
        """How much of the start is left after so many steps."""
        return float(np.linalg.norm(np.linalg.matrix_power(self.transition, steps), 2))


def langevin_matrix(metric: np.ndarray, h: np.ndarray) -> np.ndarray:
    """D = h V⁻¹ in θ ← θ − D∇L + N(0, 2D/β); h is the same within a block of V."""
    root = np.sqrt(h)
    return root[:, None] * np.linalg.inv(metric) * root


def lmc_linear(policy: Thompson, target: Gaussian, h: np.ndarray, friction: np.ndarray) -> Linear:
    """θ ← θ − D H θ + N(0, 2D/β)."""
    matrix = langevin_matrix(target.metric, h)
    return Linear(np.eye(len(h)) - matrix @ target.hessian, 2.0 / target.beta * matrix)


def ulmc_linear(policy: Thompson, target: Gaussian, h: np.ndarray, friction: np.ndarray) -> Linear:
    """v ← (1 − γh)v − hHθ + √(2γh/β) ξ, then θ ← θ + hv; u = (θ, v)."""
    step, keep = np.diag(h), np.diag(1.0 - friction * h)
    velocity = np.hstack([-step @ target.hessian, keep])
    position = np.hstack([np.eye(len(h)), np.zeros_like(keep)]) + step @ velocity
    push = np.diag(np.sqrt(2.0 * friction * h / target.beta))
    noise = np.vstack([step @ push, push])
    return Linear(np.vstack([position, velocity]), noise @ noise.T)


#: Unadjusted kernels with a Gaussian law of their own. A new one needs a line here.
LINEAR: dict[type[Kernel], Callable[..., Linear]] = {LMC: lmc_linear, ULMC: ulmc_linear}


def frictions(policy: Thompson, tuning: Any, spec: Spec) -> np.ndarray:
    """γ of every parameter; relative to √curvature where the step is."""
    gamma = float(getattr(policy.kernel, "gamma", 0.0))
    scale = 1.0 if tuning.curvature is None else np.sqrt(tuning.curvature)
    return by_parameter(gamma * scale, spec)


def gaussian_checks(
    policy: Thompson, data: Problem, label: str, draws: int = 2, chains: int = CHAINS
) -> list[Check]:
    """The kernel has its stationary law on the linear-Gaussian target.

    Half of the chains start in that law, which they must keep; the others start three times as
    wide, and must have forgotten it.
    """
    kernel = type(policy.kernel)
    if kernel is SVRGLMC:
        return svrg_checks(policy, data, label)
    target = Gaussian.of(policy, data)
    state = learned(policy, data, chains)
    covariance, d = target.posterior, len(target.mean)
    if not policy.kernel.adjusted:
        tuning = tuning_of(policy, state)
        h, friction = by_parameter(tuning.step, data.spec), frictions(policy, tuning, data.spec)
        assert kernel in LINEAR, f"no stationary law is known for {kernel.__name__}"
        linear = LINEAR[kernel](policy, target, h, friction)
        assert linear.forgets(draws * policy.steps) < 1e-4
        covariance = linear.stationary()
    rng = levels.generator_for(label)
    white = rng.normal(size=(chains, len(covariance)))
    white[chains // 2 :] *= 3.0
    start = white @ np.linalg.cholesky(covariance).T
    velocity = start[:, d:] if len(covariance) > d else None
    state = starting_at(state, target.mean + start[:, :d], velocity)
    ends = run_chains(policy, state, levels.key_for(label), draws)
    if policy.kernel.adjusted:
        assert ends.acceptance < 0.97, "the filter had nothing to do"
    checks = levels.law_is_normal(label, ends.theta, target.mean, covariance[:d, :d])
    if ends.velocity is not None:
        both = np.hstack([ends.theta - target.mean, ends.velocity])
        checks += levels.law_is_normal(f"{label} with v", both, np.zeros(2 * d), covariance)
    return checks


def svrg_checks(policy: Thompson, data: Problem, label: str, draws: int = 2) -> list[Check]:
    """SVRG-LMC has exactly the mean and covariance of its recursion, with its random batches.

    With u = (θ − m, θ̃ − m) a step is u ← M_A u + noise, where A = (n/B) Σ_batch 2ηxxᵀ is random
    and independent of u. So E[uuᵀ] obeys a linear recursion in E[A ⊗ A]. The batch is the piece of
    the history that holds a round drawn uniformly, so this is an average over n rounds.
    """
    kernel = policy.kernel
    assert isinstance(kernel, SVRGLMC)
    target = Gaussian.of(policy, data)
    state = learned(policy, data, CHAINS)
    h = by_parameter(tuning_of(policy, state).step, data.spec)
    d, n, batch = len(h), data.rounds, kernel.batch
    step = np.diag(h)
    parts = [2.0 * float(policy.eta) * np.outer(x, x) for x in data.played]
    total = np.sum(parts, axis=0)
    last = max(n // batch, 1) - 1
    starts = [batch * min(i // batch, last) for i in range(n)]
    pieces = [parts[i:] if i == batch * last else parts[i : i + batch] for i in starts]
    estimates = [n / len(piece) * np.sum(piece, axis=0) for piece in pieces]
    spread = np.mean([np.kron(a, a) for a in estimates], axis=0) - np.kron(total, total)
    eye, zero = np.eye(d), np.zeros((d, d))
    average = np.block([[eye - step @ target.hessian, zero], [zero, eye]])
    difference = np.hstack([eye, -eye])
    renew = np.block([[eye, zero], [eye, zero]])
    noise = np.block([[2.0 / target.beta * step, zero], [zero, zero]])

    def moved(second: np.ndarray) -> np.ndarray:
        """E[uuᵀ] after a step; the batches add h E[(A − Ā)(θ − θ̃)(θ − θ̃)ᵀ(A − Ā)ᵀ] h."""
        gap = difference @ second @ difference.T
        after = average @ second @ average.T + noise
        after[:d, :d] += step @ (spread @ gap.reshape(-1)).reshape(d, d) @ step
        return after

    rng = levels.generator_for(label)
    start = np.linalg.cholesky(4.0 * target.posterior)
    offset = 2.0 * np.sqrt(np.diag(target.posterior))
    first = offset
    second = np.kron(np.ones((2, 2)), start @ start.T + np.outer(offset, offset))
    for _ in range(draws):
        age = kernel.snapshot
        for _ in range(policy.steps):
            if age >= kernel.snapshot:
                second, age = renew @ second @ renew.T, 0
            second, age = moved(second), age + 1
            first = first - step @ target.hessian @ first
    theta = target.mean + offset + rng.normal(size=(CHAINS, d)) @ start.T
    ends = run_chains(policy, starting_at(state, theta), levels.key_for(label), draws)
    error = ends.theta - target.mean
    checks = [levels.mean_is(f"{label}, mean {i}", error[:, i], first[i]) for i in range(d)]
    for i in range(d):
        for j in range(i + 1):
            product = error[:, i] * error[:, j]
            checks.append(levels.mean_is(f"{label}, moment {i}, {j}", product, second[i, j]))
    return checks


# ---- two-dimensional targets with the bonus -------------------------------------------------

#: Caps that bind in some rounds and caps that never do, sharp and round.
CAPS: dict[bool, list[dict[str, float]]] = {
    False: [{"b": 0.5}, {"b": 1000.0}],
    True: [{"b": 0.5, "s": 2.0}, {"b": 3.0, "s": 0.7}],
}


@functools.cache
def two_dimensional(shared: bool, bernoulli: bool) -> Problem:
    """Two parameters: two arms of one dimension, or three arms that share two."""
    spec = Spec(
        arms=3 if shared else 2,
        dim=2 if shared else 1,
        shared=shared,
        rewards="bernoulli" if bernoulli else "squared",
    )
    return problem(spec, 16)


def bonus_agent(name: str, data: Problem, **values: Any) -> Thompson:
    """An agent with a bonus that moves and bends the target visibly."""
    lam = 1.0 if data.spec.rewards == "bernoulli" else 0.4
    return proof_agent(name, **({"lam": lam, "steps": 40} | values))


@dataclasses.dataclass(frozen=True)
class Quadrature:
    """exp(−βL) on a fine grid of cells over two parameters."""

    edges: tuple[np.ndarray, np.ndarray]
    weights: np.ndarray

    @classmethod
    def of(cls, formula: Formula, beta: float, cells: int = 500) -> "Quadrature":
        """Two passes: where the mass is, then nine standard deviations around it."""
        wide = cls._on(formula, beta, [(-8.0, 8.0)] * 2, 200)
        box = [(m - 9.0 * s, m + 9.0 * s) for m, s in zip(*wide.location(), strict=True)]
        fine = cls._on(formula, beta, box, cells)
        rim = fine.weights.sum() - fine.weights[1:-1, 1:-1].sum()
        assert rim < 1e-7, "the grid is too small"
        return fine

    @classmethod
    def _on(
        cls, formula: Formula, beta: float, box: list[tuple[float, float]], cells: int
    ) -> "Quadrature":
        edges = [np.linspace(low, high, cells + 1) for low, high in box]
        centres = [(e[1:] + e[:-1]) / 2.0 for e in edges]
        theta = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1)
        energy = beta * formula.value(theta)
        weights = np.exp(energy.min() - energy)
        return cls((edges[0], edges[1]), weights / weights.sum())

    @property
    def centres(self) -> list[np.ndarray]:
        return [(e[1:] + e[:-1]) / 2.0 for e in self.edges]

    def location(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each parameter."""
        first = (
            self.weights.sum(axis=1) @ self.centres[0],
            self.weights.sum(axis=0) @ self.centres[1],
        )
        x, y = self.centres[0] - first[0], self.centres[1] - first[1]
        second = self.weights.sum(axis=1) @ x**2, self.weights.sum(axis=0) @ y**2
        return np.array(first), np.sqrt(np.array(second))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Independent draws: a cell, then a point in it."""
        cell = rng.choice(self.weights.size, size=count, p=self.weights.reshape(-1))
        index = np.stack(np.unravel_index(cell, self.weights.shape), axis=1)
        width = np.array([e[1] - e[0] for e in self.edges])
        corner = np.array([e[0] for e in self.edges])
        return corner + width * (index + rng.random((count, 2)))

    def checks(self, label: str, samples: np.ndarray) -> list[Check]:
        """Moments of first and second order, marginals and joint probabilities."""
        mean, deviation = self.location()
        grid = [(c - m) / s for c, m, s in zip(self.centres, mean, deviation, strict=True)]
        white = ((samples - mean) / deviation).T
        w = self.weights
        checks = []
        for i, j in ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1)):
            power = grid[0][:, None] ** i * grid[1] ** j
            want = float(np.sum(w * power))
            spread = float(np.sqrt(np.sum(w * power**2) - want**2))
            moment = white[0] ** i * white[1] ** j
            checks.append(levels.mean_is(f"{label}, moment {i}, {j}", moment, want, spread))
        cumulative = np.pad(w.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        marginals = cumulative[:, -1], cumulative[-1, :]
        cuts = [
            [int(np.searchsorted(m, q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95)] for m in marginals
        ]
        for axis in range(2):
            for cut in cuts[axis]:
                hits = samples[:, axis] < self.edges[axis][cut]
                text = f"{label}, parameter {axis} below {self.edges[axis][cut]:.3f}"
                checks.append(levels.share_is(text, hits, float(marginals[axis][cut])))
        for i in cuts[0][1:4]:
            for j in cuts[1][1:4]:
                hits = (samples[:, 0] < self.edges[0][i]) & (samples[:, 1] < self.edges[1][j])
                text = f"{label}, both below {self.edges[0][i]:.3f}, {self.edges[1][j]:.3f}"
                checks.append(levels.share_is(text, hits, float(cumulative[i, j])))
        return checks


@functools.cache
def quadrature(formula: Formula, beta: float) -> Quadrature:
    """Computed once, for all the kernels that have to meet it."""
    return Quadrature.of(formula, beta)


def with_caps(policy: Thompson, lanes: int) -> tuple[Thompson, list[dict[str, float]]]:
    """The agent with each of the caps on its share of the chains: one program for all."""
    caps = CAPS[hasattr(policy.bonus, "s")]
    for name in caps[0]:
        swept = jnp.repeat(jnp.asarray([cap[name] for cap in caps]), lanes // len(caps))
        policy = eqx.tree_at(lambda p, n=name: getattr(p.bonus, n), policy, swept)
    return policy, caps


def quadrature_checks(policy: Thompson, data: Problem, label: str, draws: int = 2) -> list[Check]:
    """An adjusted kernel has the law exp(−βL), bonus and all, on two parameters.

    Half of the chains start in that law, which they must keep; the others start three times as
    wide, and must have forgotten it. A trajectory with a frozen force may stay long where that
    force is wrong: its chains all start in the law, and most must have moved.
    """
    assert policy.kernel.adjusted
    rng, beta = levels.generator_for(label), float(policy.beta)
    swept, caps = with_caps(policy, BONUS_CHAINS)
    state = learned(swept, data, BONUS_CHAINS)
    laws = [quadrature(formula_of(policy, data, **cap), beta) for cap in caps]
    starts = []
    for law in laws:
        mean, deviation = law.location()
        half = BONUS_CHAINS // (2 * len(caps))
        wide = mean + 3.0 * deviation * rng.normal(size=(half, 2))
        starts += [law.draw(rng, half), law.draw(rng, half) if state.mode is not None else wide]
    start = np.concatenate(starts)
    ends = run_chains(swept, starting_at(state, start), levels.key_for(label), draws)
    assert ends.acceptance < 0.97, "the filter had nothing to do"
    stayed = np.mean(np.all(ends.theta == start.astype(np.float32), axis=1))
    checks = [levels.close(f"{label}, share of chains that never moved", stayed, 0.0, 0.1)]
    for law, cap, part in zip(laws, caps, np.split(ends.theta, len(caps)), strict=True):
        checks += law.checks(f"{label}, {cap}", part)
    return checks


# ---- the stationary law of unadjusted kernels on any target ---------------------------------


def langevin_identities(
    policy: Thompson, data: Problem, state: ThompsonState, theta: np.ndarray, g: np.ndarray
) -> dict[str, np.ndarray]:
    """What has mean 0 in the stationary law of θ ← θ − D∇L + N(0, 2D/β).

    The means of θ and of θθᵀ do not change in a step:
    E[D∇L] = 0 and E[θ∇LᵀD + D∇Lθᵀ − D∇L∇LᵀD] = 2D/β.
    """
    h = by_parameter(tuning_of(policy, state).step, data.spec)
    matrix, beta = langevin_matrix(metric_of(policy, data), h), float(policy.beta)
    drift, centred = g @ matrix, theta - theta.mean(axis=0)
    out = {f"drift {i}": drift[:, i] for i in range(len(h))}
    for i in range(len(h)):
        for j in range(i + 1):
            out[f"square {i}, {j}"] = (
                centred[:, i] * drift[:, j]
                + drift[:, i] * centred[:, j]
                - drift[:, i] * drift[:, j]
                - 2.0 / beta * matrix[i, j]
            )
    return out


def underdamped_identities(
    policy: Thompson,
    data: Problem,
    state: ThompsonState,
    theta: np.ndarray,
    g: np.ndarray,
    v: np.ndarray,
) -> dict[str, np.ndarray]:
    """The same for v ← w + √(2γh/β) ξ with w = (1 − γh)v − h∇L, then θ ← θ + hv."""
    tuning = tuning_of(policy, state)
    h, friction = by_parameter(tuning.step, data.spec), frictions(policy, tuning, data.spec)
    w = (1.0 - friction * h) * v - h * g
    noise = 2.0 * friction * h / float(policy.beta)
    x = theta - theta.mean(axis=0)
    out = {f"velocity {i}": w[:, i] - v[:, i] for i in range(len(h))}
    out |= {f"position {i}": w[:, i] for i in range(len(h))}
    for i in range(len(h)):
        for j in range(len(h)):
            luck = noise[i] * (i == j)
            ww = w[:, i] * w[:, j] + luck
            xw = x[:, i] * w[:, j] + h[i] * ww
            out[f"position × velocity {i}, {j}"] = xw - x[:, i] * v[:, j]
            if j <= i:
                out[f"velocity² {i}, {j}"] = ww - v[:, i] * v[:, j]
                out[f"position² {i}, {j}"] = h[i] * w[:, i] * x[:, j] + h[j] * xw
    return out


def stationarity_checks(policy: Thompson, data: Problem, label: str, draws: int = 3) -> list[Check]:
    """An unadjusted kernel is in its own stationary law for the right gradient.

    The chains start wide. At the end, one more step with the gradient of the formula must not
    change the first and second moments on average: exact at any step size.
    """
    assert not policy.kernel.adjusted
    rng = levels.generator_for(label)
    swept, caps = with_caps(policy, BONUS_CHAINS)
    state = starting_at(learned(swept, data, BONUS_CHAINS), rng.normal(size=(BONUS_CHAINS, 2)))
    ends = run_chains(swept, state, levels.key_for(label), draws)
    checks = []
    for k, cap in enumerate(caps):
        part = slice(k * BONUS_CHAINS // len(caps), (k + 1) * BONUS_CHAINS // len(caps))
        theta = ends.theta[part]
        g = formula_of(policy, data, **cap).gradient(theta)
        if ends.velocity is None:
            zero = langevin_identities(policy, data, state, theta, g)
        else:
            zero = underdamped_identities(policy, data, state, theta, g, ends.velocity[part])
        checks += levels.zero_means(f"{label}, {cap}", zero)
    return checks
