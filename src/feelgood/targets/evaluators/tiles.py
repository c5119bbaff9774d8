"""The full pass of one chain that has a program of its own on an accelerator."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.numerics import chain_programs
from feelgood.targets.best_arms import at_first, highest
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Chunk, Rows, row_scores
from feelgood.targets.sums import Theta, Value


class Tiles(Evaluator):
    """Every stored context, tile by tile, up to the last round that there is.

    Each thread has rounds of its own in a tile and adds up what they give; the threads' sums are
    added once, at the end. A tile is read while the one before it is worked on: there are too few
    threads for some to work while others wait for the memory.
    """

    def full(self) -> "Tiles":
        return self

    def init(self) -> tuple[()]:
        return ()

    def evaluate(
        self, memo: tuple[()], rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, tuple[()]]:
        del uniform
        tile = chain_programs.THREADS.tile
        assert rows.capacity >= tile

        def read(i: Int[Array, ""] | int) -> Chunk:
            # The last tile is moved back to stay inside the store; its mask starts where it should.
            return rows.slice(jnp.minimum(i * tile, rows.capacity - tile), tile)

        def one(i: Int[Array, ""], carry: tuple[Array, ...]) -> tuple[Array, ...]:
            value, gradient, contexts = carry
            # The barrier: otherwise the compiler reads the tile at the end of the turn.
            chunk, ahead = read(i), lax.optimization_barrier(read(i + 1).contexts)
            assert ahead is not None
            counted = jnp.where(chunk.numbers >= i * tile, chunk.valid, 0.0)
            weights = self.bonus.weighed(counted, chunk.numbers)
            scores = row_scores(self.spec, theta, contexts)
            best = highest(scores)
            pull = at_first(scores, best, self.bonus.slope(best) * weights)
            value = value + self.bonus.phi(best) * weights
            return value, gradient + pull * contexts[:, None], ahead

        start = read(0).contexts
        assert start is not None
        tiles = lax.div(rows.filled + tile - 1, tile)
        value, gradient, _ = lax.fori_loop(
            0, tiles, one, (jnp.zeros(tile), jnp.zeros((*theta.shape, tile)), start)
        )
        return jnp.sum(value), jnp.sum(gradient, axis=-1), memo
