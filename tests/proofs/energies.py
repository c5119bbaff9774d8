"""Checks of the energy and its gradient against the formula in float64.

Tolerances are a few units of float32 rounding of the sum of the sizes of all terms.
"""

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
    flat,
    formula_of,
    learned,
    problem,
    quick_jit,
    unflat,
)
from scipy import special

from feelgood.agents.thompson import Thompson
from feelgood.core.spec import Likelihood, Spec
from feelgood.samplers.blocks import Noise, Tuning
from feelgood.targets.energy import LinearModelTarget
from feelgood.targets.evaluators import Evaluator
from feelgood.targets.history import Rows

#: 2⁻²⁴ is half a unit in the last place; sums of n terms lose up to a few √n of it.
ROUNDING = 32 * 2.0**-24


def points_for(formulas: list[Formula], label: str, count: int) -> np.ndarray:
    """Random θ near and far, none of them at a corner of any of the energies."""
    rng = levels.generator_for(label)
    parameters = formulas[0].problem.spec.parameters
    scale = rng.choice([0.3, 1.0, 4.0], size=(16 * count, 1))
    theta = (scale * rng.normal(size=(16 * count, parameters))).astype(np.float32)
    theta = theta.astype(np.float64)
    away = np.min([formula.corner_distance(theta) for formula in formulas], axis=0) > 1e-3
    assert np.sum(away) >= count
    return theta[away][:count]


def value_and_gradient_checks(
    label: str,
    formula: Formula,
    points: np.ndarray,
    origins: np.ndarray,
    rise: Any,
    gradient: Any,
) -> list[Check]:
    """`rise` is L(θ) − L(origin), and `gradient` is ∇L(θ)."""
    size = formula.size(points) + formula.size(origins)
    want = formula.value(points) - formula.value(origins)
    steep = formula.gradient_size(points)[:, None]
    slopes = formula.gradient(points)
    return [
        levels.close(f"{label}, value", rise, want, ROUNDING * size),
        levels.close(f"{label}, gradient", gradient, slopes, ROUNDING * steep),
    ]


def energy_checks(
    policy: Thompson, data: Problem, label: str, caps: list[dict[str, float]]
) -> list[Check]:
    """Value and gradient of many chains at once, each cap on its share of them."""
    share = 64
    formulas = [formula_of(policy, data, **cap) for cap in caps]
    both = [points_for(formulas, f"{label} {k}", share * len(caps)) for k in range(2)]
    points, origins = both
    swept = policy
    for name in caps[0]:
        values = jnp.repeat(jnp.asarray([cap[name] for cap in caps]), share)
        swept = eqx.tree_at(lambda p, n=name: getattr(p.bonus, n), swept, values)
    state = learned(swept, data, len(points))
    memo = state.chain.memo
    no_luck = jnp.zeros((0, len(points)))

    @quick_jit
    def measure(swept: Thompson, state: Any, theta: Any, origin: Any) -> Any:
        target = LinearModelTarget.of(swept.energy(state.spec), state.data, origin)
        carried = target.begin(memo, origin)
        start, _ = target.value(origin, carried, no_luck)
        value, gradient, carried = target.evaluate(theta, carried, no_luck)
        alone, _ = target.value(theta, carried, no_luck)
        return value - start, alone - start, gradient, target.data_gradient(theta)

    spec = data.spec
    rise, alone, gradient, plain = measure(
        swept, state, unflat(points, spec), unflat(origins, spec)
    )
    checks = []
    for k, formula in enumerate(formulas):
        part = slice(k * share, (k + 1) * share)
        text = f"{label}, {caps[k]}"
        there, here = origins[part], points[part]
        measured = np.asarray(rise)[part], flat(gradient)[part]
        checks += value_and_gradient_checks(text, formula, here, there, *measured)
        without = Formula(data, eta=formula.eta, rho=formula.rho)
        measured = np.asarray(alone)[part], flat(plain)[part]
        one, _ = value_and_gradient_checks(f"{text}, alone", formula, here, there, *measured)
        _, two = value_and_gradient_checks(f"{text}, no bonus", without, here, there, *measured)
        checks += [one, two]
    return checks


def bonus_of(formula: Formula, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Σ w_s φ, its gradient and the distance from a corner, for long histories of disjoint arms."""
    data, weights = formula.problem, formula.weights / formula.lam
    assert not formula.linked
    spec, x = data.spec, data.contexts.astype(np.float64)
    theta = points.reshape(-1, spec.dim, spec.arms)
    values, gradients, distances = [], [], []
    for one in theta:
        scores = x @ one
        arm = np.argmax(scores, axis=1)
        best, second = np.sort(scores, axis=1)[:, :-3:-1].T
        if np.isinf(formula.s):
            phi, slope = np.minimum(formula.b, best), 1.0 * (best < formula.b)
            gap = np.minimum(best - second, np.abs(best - formula.b))
        else:
            depth = formula.s * (formula.b - best)
            phi = formula.b - np.logaddexp(0.0, depth) / formula.s
            slope, gap = special.expit(depth), best - second
        values.append(np.sum(weights * phi))
        gradients.append(x.T @ ((weights * slope)[:, None] * np.eye(spec.arms)[arm]))
        distances.append(np.min(gap))
    return np.array(values), np.array(gradients).reshape(points.shape), np.array(distances)


@quick_jit
def _evaluate(evaluator: Evaluator, memo: Any, rows: Rows, theta: Any) -> Any:
    return evaluator.evaluate(memo, rows, theta, jnp.zeros((0,)))


@quick_jit
def _begin(evaluator: Evaluator, memo: Any, rows: Rows, theta: Any) -> Any:
    return evaluator.begin(memo, rows, theta)


def evaluator_checks(
    evaluator: Evaluator, rows: Rows, memo: Any, formula: Formula, points: np.ndarray, label: str
) -> tuple[list[Check], Any]:
    """The bonus of one chain at one point after the other, the memo going from each to the next."""
    data = formula.problem
    thetas = [unflat(point, data.spec) for point in points]
    memo = _begin(evaluator, memo, rows, thetas[0])
    got, slopes = [], []
    for theta in thetas:
        value, gradient, memo = _evaluate(evaluator, memo, rows, theta)
        got.append(float(value))
        slopes.append(flat(gradient))
    values, gradients, _ = bonus_of(formula, points)
    lengths = np.linalg.norm(data.contexts.astype(np.float64), axis=1)
    reach = np.linalg.norm(points, axis=1) * np.sum(lengths)
    size = reach + reach[0] + 2.0 * min(formula.b, 100.0)
    rise, want = np.array(got) - got[0], values - values[0]
    checks = [
        levels.close(f"{label}, value", rise, want, ROUNDING * size),
        levels.close(f"{label}, gradient", slopes, gradients, ROUNDING * np.sum(lengths)),
    ]
    return checks, memo


def svrg_sum_checks(name: str, shared: bool, bernoulli: bool, batch: int = 1) -> list[Check]:
    """The average of a kernel's step over all batches is that of the full gradient.

    Chain i uses the piece of the history that round i is in; without noise the step is −h times
    its estimate.
    """
    rewards: Likelihood = "bernoulli" if bernoulli else "squared"
    data = problem(Spec(arms=3, dim=2, shared=shared, rewards=rewards), 40)
    policy = agent(name, **(SETTINGS | {"lam": 0.7, "batch": batch, "b": 0.5}))
    formula = formula_of(policy, data)
    snapshot, point = points_for([formula], f"{name} {shared} {bernoulli}", 2)
    n, spec = data.rounds, data.spec
    state = learned(policy, data, n)
    at = {p: unflat(np.broadcast_to(v, (n, len(v))), spec) for p, v in enumerate((snapshot, point))}
    target = LinearModelTarget.of(policy.energy(state.spec), state.data, at[0])
    steep = float(formula.gradient_size(point[None])[0])
    tuning = Tuning(step=jnp.asarray(1.0 / steep), beta=jnp.asarray(1.0))
    noise = Noise(normal=jnp.zeros_like(at[0]), uniform=(jnp.arange(n)[None] + 0.5) / n)

    @quick_jit
    def step(policy: Thompson, chain: Any, target: LinearModelTarget) -> Any:
        chain = policy.kernel.refresh(chain._replace(theta=at[0]), target, tuning)
        return policy.kernel.step(noise, chain._replace(theta=at[1]), target, tuning)[0].theta

    estimates = (flat(at[1]) - flat(step(policy, state.chain, target))) * steep
    spread = n * steep + np.abs(point).max() * steep  # an estimate of one row is n times as large
    return [
        levels.close("mean", estimates.mean(axis=0), formula.gradient(point), ROUNDING * spread),
        levels.close("they differ", min(1.0, np.std(estimates)), 1.0, 0.99),
    ]
