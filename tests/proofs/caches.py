"""Checks that nothing which a chain caches outlives the data it was computed from."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from proofs import levels
from proofs.energies import ROUNDING
from proofs.levels import Check
from proofs.targets import Problem, fed, flat, formula_of, quick_jit, with_lanes

from feelgood.agents.thompson import Thompson
from feelgood.targets.energy import LinearModelTarget

CHAINS = 64


def cache_checks(policy: Thompson, data: Problem, label: str) -> list[Check]:
    """A round after an update goes as if the chain had cached nothing.

    The chains draw, the data double, and they draw again. Chains at the same points that have
    nothing cached must come to the same θ by the same draw. The value and the gradient that are
    cached then must be those of the new data.
    """
    keys = jax.random.split(levels.key_for(label), (3, CHAINS))
    draw = quick_jit(lambda p, k, s: p.draw(k, s))
    half = data.rounds // 2
    state = policy.reserve(policy.init(keys[0], with_lanes(data.spec, CHAINS)), data.rounds)
    before = draw(policy, keys[1], fed(policy, state, data, range(half)))
    warm = fed(policy, before, data, range(half, data.rounds))
    start, memo = warm.chain.theta, warm.chain.memo
    nothing = policy.kernel.init(start, memo)
    if hasattr(nothing, "velocity"):
        nothing = nothing._replace(velocity=warm.chain.velocity)
    cold = eqx.tree_at(lambda s: s.chain, warm, nothing)
    after, fresh = draw(policy, keys[2], warm), draw(policy, keys[2], cold)
    checks = [levels.close(f"{label}, θ", after.chain.theta, fresh.chain.theta, 1e-30)]
    formula = formula_of(policy, data)
    theta, origin = flat(after.chain.theta), flat(start)
    if hasattr(after.chain, "value"):
        target = LinearModelTarget.of(policy.energy(warm.spec), warm.data, start)
        zero, _ = target.value(start, memo, jnp.zeros((0, CHAINS)))
        got = np.asarray(after.chain.value - zero, np.float64)
        rise = formula.value(theta) - formula.value(origin)
        size = formula.size(theta) + formula.size(origin)
        checks.append(levels.close(f"{label}, value", got, rise, ROUNDING * size))
    if hasattr(after.chain, "gradient"):
        away = formula.corner_distance(theta) > 1e-4
        error = (flat(after.chain.gradient) - formula.gradient(theta))[away]
        tolerance = ROUNDING * formula.gradient_size(theta)[away, None]
        checks.append(levels.close(f"{label}, gradient", error, 0.0, tolerance))
    return checks
