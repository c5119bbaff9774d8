"""Every stored context, in one fused pass: the plain definition of the bonus."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood.targets.best_arms import WRITTEN_OUT_COMPARISONS, highest, rows_bonus
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Chunk, Rows, row_scores, total_of
from feelgood.targets.sums import Theta, Value


class FullPass(Evaluator):
    """Every stored context, at every evaluation."""

    def init(self) -> tuple[()]:
        return ()

    def evaluate(
        self, memo: tuple[()], rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, tuple[()]]:
        del uniform

        def of_chunk(chunk: Chunk, theta: Theta) -> tuple[Value, Theta]:
            assert chunk.contexts is not None
            weights = self.bonus.weighed(chunk.valid, chunk.numbers)
            return rows_bonus(self.spec, self.bonus, theta, chunk.contexts, weights, rows.contexts)

        value, gradient = rows.total(of_chunk, theta)
        return value, gradient, memo

    def value(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        del uniform

        def of_chunk(chunk: Chunk, theta: Theta) -> Value:
            assert chunk.contexts is not None
            scores = row_scores(self.spec, theta, chunk.contexts)
            if len(scores) > WRITTEN_OUT_COMPARISONS:
                # Folded once: a lone reduction would take the sums of the scores into itself, and
                # compute them round by round with long strides.
                half = -(-len(scores) // 2)
                scores = jnp.maximum(scores[:half], scores[-half:])
            weights = self.bonus.weighed(chunk.valid, chunk.numbers)
            return total_of(self.bonus.phi(highest(scores)), weights)

        return rows.total(of_chunk, theta), memo
