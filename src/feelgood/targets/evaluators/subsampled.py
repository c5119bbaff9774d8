"""An unbiased estimate of the bonus' gradient: one full gradient per round plus a correction."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from feelgood.targets.best_arms import rows_bonus
from feelgood.targets.evaluators.base import Evaluator
from feelgood.targets.history import Rows, Theta, Value, piece_length, random_piece


class Batched(NamedTuple):
    """The memo of `Subsampled`: where the round began, and the full gradient there."""

    inner: Any
    start: Theta
    gradient: Theta


class Subsampled(Evaluator):
    """Unbiased: ∇B(θ₀) + (n/B) Σ_batch [∇φ_i(θ) − ∇φ_i(θ₀)], θ₀ where the round began.

    The batch is a random piece of the history for every evaluation; see `history.random_piece`.
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
        no_luck = jnp.zeros((0, *theta.shape[2:]))
        _, gradient, inner = self.inner.evaluate(inner, rows, theta, no_luck)
        return Batched(inner=self.inner.end(inner), start=theta, gradient=gradient)

    def evaluate(
        self, memo: Batched, rows: Rows, theta: Theta, luck: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Batched]:
        piece, weight = random_piece(luck[0], rows.filled, self.batch)

        def change(longest: int | None) -> Callable[[], Theta]:
            """Σ_piece [∇φ_i(θ) − ∇φ_i(θ₀)] for a piece of at most so many rounds; None: any."""

            def of_piece() -> Theta:
                chunk = rows.piece(piece, self.batch, longest)
                assert chunk.contexts is not None
                _, here = rows_bonus(self.spec, self.bonus, theta, chunk.contexts, chunk.valid)
                _, there = rows_bonus(
                    self.spec, self.bonus, memo.start, chunk.contexts, chunk.valid
                )
                return here - there

            return of_piece

        if piece.ndim:
            total = change(None)()
        else:  # only the last piece may be longer than a batch
            longer = piece_length(piece, rows.filled, self.batch) > self.batch
            total = lax.cond(longer, change(None), change(self.batch))
        no_value = jnp.full(theta.shape[2:], jnp.nan)
        return no_value, memo.gradient + weight * total, memo
