"""The full pass of one chain that has a program of its own on an accelerator."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.numerics import chain_programs
from feelgood.targets.best_arms import at_first, highest
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows, row_scores
from feelgood.targets.sums import Theta, Value


class Tiles(Evaluator):
    """Every stored context, tile by tile, up to the last round that there is.

    Each thread has rounds of its own in a tile and adds up what they give; the threads' sums are
    added once, at the end.
    """

    def full(self) -> "Tiles":
        return self

    def init(self) -> tuple[()]:
        return ()

    def evaluate(
        self, memo: tuple[()], rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, tuple[()]]:
        del uniform
        tile, _, together = chain_programs.THREADS
        stride = tile * together
        assert rows.capacity >= tile

        def part(number: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
            # The last tile is moved back to stay inside the store; its mask starts where it should.
            first = jnp.minimum(number * tile, rows.capacity - tile)
            chunk = rows.slice(first, tile)
            assert chunk.contexts is not None
            counted = jnp.where(chunk.numbers >= number * tile, chunk.valid, 0.0)
            weights = self.bonus.weighed(counted, chunk.numbers)
            scores = row_scores(self.spec, theta, chunk.contexts)
            best = highest(scores)
            pull = at_first(scores, best, self.bonus.slope(best) * weights)
            value, gradient = sums
            return (
                value + self.bonus.phi(best) * weights,
                gradient + pull * chunk.contexts[:, None],
            )

        def one(i: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
            for k in range(together):
                sums = part(i * together + k, sums)
            return sums

        nothing = jnp.zeros(tile), jnp.zeros((*theta.shape, tile))
        value, gradient = lax.fori_loop(0, lax.div(rows.filled + stride - 1, stride), one, nothing)
        return jnp.sum(value), jnp.sum(gradient, axis=-1), memo
