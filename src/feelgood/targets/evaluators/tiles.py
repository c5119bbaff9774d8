"""The full pass of one chain that has a program of its own on an accelerator."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.numerics import chain_programs
from feelgood.targets.best_arms import add_at_first, highest
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
        threads, store = chain_programs.THREADS, rows.contexts
        tile, stride = threads.tile, threads.stride
        assert store is not None and rows.capacity >= stride

        def turn(i: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
            # The last turn is moved back to stay inside the store, and leaves out what was before.
            first = jnp.minimum(i * stride, rows.capacity - stride)
            chunk = chain_programs.read_tiles(store, first, threads)
            numbers = chain_programs.tile_numbers(first, threads)
            for k, which in zip(np.ndindex(chunk.shape[1:3]), numbers, strict=True):
                sums = add(chunk[:, *k], which, i * stride, sums)
            return sums

        def add(
            contexts: Array, numbers: Array, least: Array, sums: tuple[Array, Array]
        ) -> tuple[Array, Array]:
            # One comparison: what is below the least number is a large one without a sign.
            here, ahead = (x.astype(jnp.uint32) for x in (numbers - least, rows.filled - least))
            inside = here < ahead
            scores = row_scores(self.spec, theta, contexts)
            best = highest(scores)
            phi = self.bonus.weighed(self.bonus.phi(best), numbers)
            slope = self.bonus.weighed(self.bonus.slope(best), numbers)
            value, gradient = sums
            value = value + jnp.where(inside, phi, 0.0)
            pulled = contexts if self.bonus.hard else slope * contexts
            counted = jnp.where(inside & (slope != 0.0), best, jnp.nan)
            return value, add_at_first(gradient, pulled, scores, counted)

        nothing = jnp.zeros(tile), jnp.zeros((*theta.shape, tile))
        turns = lax.div(rows.filled + stride - 1, stride)
        value, gradient = lax.fori_loop(0, turns, turn, nothing)
        return jnp.sum(value), jnp.sum(gradient, axis=-1), memo
