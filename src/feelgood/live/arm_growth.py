"""One more arm: an agent's state with a block of the prior."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import Hints, Policy
from feelgood.core.spec import Spec
from feelgood.engine.compiling import in_own_precision


@in_own_precision
def with_one_more_arm(
    name: str, policy: Policy, spec: Spec, hints: Hints, state: Any, key: Any, room: int
) -> Any:
    """The state of `spec`, with one arm more; `policy` takes the lanes of `spec`.

    A leaf that has an axis of arms gets the entries of a fresh state for the new one. In what is
    remembered of past rounds the new arm shows what the first arm shows, so that no best arm of the
    past changes. Factorisations are then made anew, with what was learned of noise and prior.
    """
    more = dataclasses.replace(spec, arms=spec.arms + 1)

    def fresh(arms: Spec, rounds: int) -> Any:
        return policy.reserve(policy.init(key, arms), rounds)

    new = fresh(more, room)
    larger = jax.tree.leaves(jax.eval_shape(lambda: fresh(more, 2 * room)))
    leaves, tree = jax.tree.flatten(new)
    old = jax.tree.leaves(state)
    out = []
    for before, after, wider in zip(old, leaves, larger, strict=True):
        axes = [i for i, (a, b) in enumerate(zip(before.shape, after.shape, strict=True)) if a != b]
        if any(before.shape[i] != spec.arms or after.shape[i] != more.arms for i in axes):
            raise FeelgoodError(
                f"{name} cannot gain an arm: its parameters are one vector for all arms; make a "
                "new bandit."
            )
        if axes and wider.shape != after.shape:
            widths = [(0, 1) if i in axes else (0, 0) for i in range(before.ndim)]
            first = jnp.take(before, jnp.zeros(1, jnp.int32), axis=axes[0])
            grown = jnp.concatenate([before, first], axis=axes[0])
            out.append(grown if len(axes) == 1 else jnp.pad(before, widths, mode="edge"))
        elif axes:
            out.append(after.at[tuple(slice(0, n) for n in before.shape)].set(before))
        else:
            out.append(before)
    grown_state = jax.tree.unflatten(tree, out)
    return grown_state if hints.rebuilt is None else hints.rebuilt(grown_state, jnp.ones(()))


def with_a_column_more(context: np.ndarray) -> np.ndarray:
    """A remembered context of arms that show their own features, for one arm more."""
    return np.concatenate([context, context[:, :1]], axis=1)
