"""What a device that carries out programs of a chain may have a better way for."""

from typing import Any

import jax.numpy as jnp


class Machine:
    """The operations that a device may have a better way for; here those that every device has."""

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """ab + c of three tiles."""
        return a * b + c

    def sums(self, tiles: list[Any]) -> list[Any]:
        """The sum of each tile."""
        return [jnp.sum(tile) for tile in tiles]

    def apart(self, several: Any, count: int) -> list[Any]:
        """`count` tiles of an array in which their numbers take turns."""
        return [several[k::count] for k in range(count)]

    def add_at_first(
        self, sums: list[Any], rows: list[Any], scores: list[Any], best: list[Any]
    ) -> list[Any]:
        """See `targets.best_arms`."""
        [largest], left, hits = best, ~jnp.isnan(best[0]), []
        for score in scores[:-1]:
            hits.append(left & (score == largest))
            left = left & (score != largest)
        hits.append(left)
        return [
            total + jnp.where(hits[k % len(hits)], rows[k // len(hits)], 0.0)
            for k, total in enumerate(sums)
        ]

    def forget(self) -> None:
        """What was read from memory before is read again, and not kept all the while."""
