"""Σ over stored contexts of a bonus on the best arm, and its gradient, one short strip at a time.

For one chain with disjoint arms, on a processor; see `targets.strips`. No library is called, so
that the loop of the inner steps is compiled whole (see `core.flags`).
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.core.spec import Spec
from feelgood.targets.best_arms import rows_bonus
from feelgood.targets.bonus import Bonus
from feelgood.targets.strips import PARTIAL_SUMS, STRIP, WRITTEN_OUT_PARAMETERS, kept
from feelgood.targets.sums import Theta, Value

#: The weights of the rounds of a strip that begins there; None: all are 1.
Weigh = Callable[[Int[Array, ""]], Float[Array, " strip"]] | None


def bonus_by_strips(
    spec: Spec,
    bonus: Bonus,
    theta: Theta,
    contexts: Float[Array, "dim room"],
    weigh: Weigh,
    window: tuple[Int[Array, ""], Int[Array, ""]],
) -> tuple[Value, Theta]:
    """Σ w_s φ and its gradient over the contexts of a window: from its first to before its last."""
    first, last = window
    written_out = spec.parameters <= WRITTEN_OUT_PARAMETERS

    def one(i: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
        # The last strip is moved back to stay inside the store; its mask starts where it should.
        planned = first + i * STRIP
        start = jnp.minimum(planned, contexts.shape[1] - STRIP)
        number = start + jnp.arange(STRIP)
        strip = _Strip(
            contexts=contexts,
            start=start,
            turn=i,
            valid=(number >= planned) & (number < last),
            weights=None if weigh is None else weigh(start),
        )
        value, gradient = (strip.written_out if written_out else strip.by_products)(
            spec, bonus, theta
        )
        return sums[0] + value, sums[1] + gradient

    parts = PARTIAL_SUMS if written_out else 1
    nothing = jnp.zeros(parts), jnp.zeros((*theta.shape, parts))
    value, gradient = lax.fori_loop(0, -(-(last - first) // STRIP), one, nothing)
    return jnp.sum(value, axis=-1), jnp.sum(gradient, axis=-1)


class _Strip(eqx.Module):
    """Some contexts of a store that lie side by side."""

    contexts: Float[Array, "dim room"]
    start: Int[Array, ""]
    turn: Int[Array, ""]
    valid: Bool[Array, " strip"]
    weights: Float[Array, " strip"] | None

    def features(self) -> Float[Array, "dim strip"]:
        return lax.dynamic_slice_in_dim(self.contexts, self.start, STRIP, axis=1)

    def scores(self, theta: Theta) -> list[Float[Array, " strip"]]:
        """f_θ of each arm."""
        # One slice per feature: the compiler would copy a slice that it takes apart again.
        x = [
            lax.dynamic_slice(self.contexts, (d, self.start), (1, STRIP)).reshape(STRIP)
            for d in range(len(theta))
        ]
        return [
            functools.reduce(jnp.add, [theta[d, a] * x[d] for d in range(len(x))])
            for a in range(theta.shape[1])
        ]

    def written_out(
        self, spec: Spec, bonus: Bonus, theta: Theta
    ) -> tuple[Float[Array, " parts"], Float[Array, "dim arms parts"]]:
        """Partial sums of w_s φ, and of its gradient."""

        def weighed(function: Callable[[Array], Array]) -> Array:
            shares = function(functools.reduce(jnp.maximum, self.scores(theta)))
            return shares if self.weights is None else shares * self.weights

        def winner() -> Array:
            """The first of the best arms; none of them where the slope is 0."""
            highest, *others = self.scores(theta)
            who = jnp.zeros(STRIP, jnp.int32)
            for arm, score in enumerate(others, start=1):
                who = jnp.where(score > highest, arm, who)
                highest = jnp.maximum(highest, score)
            pulled = self.valid & (bonus.slope(highest) > 0) if bonus.hard else self.valid
            return jnp.where(pulled, who, spec.arms)

        who, pulls = kept(self.turn, winner), self.features()
        if not bonus.hard:
            pulls = pulls * kept(self.turn, lambda: weighed(bonus.slope))
        arms = jnp.arange(spec.arms, dtype=jnp.int32)[:, None]
        gradient = jnp.where(who == arms, pulls[:, None], 0.0)
        return _by_parts(jnp.where(self.valid, weighed(bonus.phi), 0.0)), _by_parts(gradient)

    def by_products(
        self, spec: Spec, bonus: Bonus, theta: Theta
    ) -> tuple[Float[Array, " 1"], Float[Array, "dim arms 1"]]:
        """The same as one part each, where there are many parameters."""
        weights = self.valid.astype(jnp.float32)
        if self.weights is not None:
            weights = weights * self.weights
        value, gradient = rows_bonus(spec, bonus, theta, self.features(), weights)
        return value[None], gradient[..., None]


def _by_parts(strip: Float[Array, "*any strip"]) -> Float[Array, "*any parts"]:
    """The sum of a strip's parts, two by two."""
    parts = [strip[..., k : k + PARTIAL_SUMS] for k in range(0, STRIP, PARTIAL_SUMS)]
    while len(parts) > 1:
        parts = [one + other for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
