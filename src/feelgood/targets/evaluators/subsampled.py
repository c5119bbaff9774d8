"""An unbiased estimate of the bonus' gradient: one full gradient per round plus a correction."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from feelgood.targets.best_arms import rows_bonus
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows
from feelgood.targets.random_batches import batch_length, random_batch
from feelgood.targets.sums import Theta, Value


class Batched(NamedTuple):
    """The memo of `Subsampled`: where the round began, and the full gradient there."""

    inner: Any
    start: Theta
    gradient: Theta


class Subsampled(Evaluator):
    """Unbiased: ∇B(θ₀) + (n/B) Σ_batch w_i [∇φ_i(θ) − ∇φ_i(θ₀)], θ₀ where the round began.

    Every evaluation draws a batch of consecutive rounds; see `random_batches.random_batch`.
    Dubey et al., "Variance reduction in stochastic gradient Langevin dynamics", NeurIPS 2016.
    """

    inner: Evaluator
    batch: int = eqx.field(static=True)

    @property
    def uniforms(self) -> int:
        return 1

    def init(self) -> Batched:
        zeros = jnp.zeros((self.spec.dim, self.spec.blocks, *self.spec.lanes))
        return Batched(inner=self.inner.init(), start=zeros, gradient=zeros)

    def reserve(self, memo: Batched, rounds: int) -> Batched:
        return memo._replace(inner=self.inner.reserve(memo.inner, rounds))

    def extend(self, memo: Batched, rows: Rows, context: Float[Array, "..."]) -> Batched:
        return memo._replace(inner=self.inner.extend(memo.inner, rows, context))

    def begin(self, memo: Batched, rows: Rows, theta: Theta) -> Batched:
        inner = self.inner.begin(memo.inner, rows, theta)
        no_uniforms = jnp.zeros((0, *theta.shape[2:]))
        _, gradient, inner = self.inner.evaluate(inner, rows, theta, no_uniforms)
        return Batched(inner=self.inner.end(inner), start=theta, gradient=gradient)

    def evaluate(
        self, memo: Batched, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Batched]:
        number, weight = random_batch(uniform[0], rows.filled, self.batch)

        def change(longest: int | None) -> Callable[[], Theta]:
            """Σ_batch w_i [∇φ_i(θ) − ∇φ_i(θ₀)] for a batch of at most so many rounds; None: any."""

            def of_piece() -> Theta:
                chunk = rows.batch(number, self.batch, longest)
                assert chunk.contexts is not None
                weights = self.bonus.weighed(chunk.valid, chunk.numbers)
                _, here = rows_bonus(self.spec, self.bonus, theta, chunk.contexts, weights)
                _, there = rows_bonus(self.spec, self.bonus, memo.start, chunk.contexts, weights)
                return here - there

            return of_piece

        if number.ndim:
            total = change(None)()
        else:  # only the last one may be longer
            longer = batch_length(number, rows.filled, self.batch) > self.batch
            total = lax.cond(longer, change(None), change(self.batch))
        no_value = jnp.full(theta.shape[2:], jnp.nan)
        return no_value, memo.gradient + weight * total, memo
