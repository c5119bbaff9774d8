"""The full pass as an accelerator likes it: many chains, one read of the history per seed."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.bonus import Bonus
from feelgood.targets.evaluators.full import FullPass
from feelgood.targets.evaluators.tiles import Tiles
from feelgood.targets.history import Rows
from feelgood.targets.sums import Theta, Value


class Columns(FullPass):
    """The same for many chains on an accelerator, disjoint arms: one fused read of the history.

    Settings of a sweep share their seed's contexts, so those are read once per seed. Arms and
    dimensions are written out. The history is taken apart into one array per dimension at the start
    of a round, because slices of it would be copied at every step.
    """

    def alone(self) -> "Tiles":
        return Tiles(bonus=self.bonus, spec=self.spec)

    def begin(self, memo: Any, rows: Rows, theta: Theta) -> tuple[Array, ...]:
        del memo, theta
        contexts = rows.contexts
        assert contexts is not None
        seeds = contexts.shape[1] // self.spec.layout.settings
        return tuple(contexts[i, :seeds] for i in range(self.spec.dim))

    def end(self, memo: Any) -> tuple[()]:
        return ()

    def evaluate(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Any]:
        del uniform
        dim, arms = theta.shape[:2]
        group = (self.spec.layout.settings, theta.shape[2] // self.spec.layout.settings)
        by_seed = theta.reshape(dim, arms, *group)[..., None]
        bonus = jax.tree.map(lambda x: x.reshape(group) if x.ndim else x, self.bonus)
        every = rows.slice(0, rows.capacity)
        valid, weights = every.valid, bonus.weighed(every.valid, every.numbers)
        columns = [column[None] for column in memo]

        def score(arm: int) -> Array:
            total = by_seed[0, arm] * columns[0]
            for i in range(1, dim):
                total = total + by_seed[i, arm] * columns[i]
            return total

        best, winner = score(0), jnp.zeros((*group, rows.capacity), jnp.int32)
        for arm in range(1, arms):
            challenger = score(arm)
            wins = challenger > best
            best, winner = jnp.where(wins, challenger, best), jnp.where(wins, arm, winner)
        value = jnp.sum(bonus.phi(best) * weights, axis=-1)
        slope = bonus.weighed(bonus.slope(best), every.numbers)
        # The winner, or no arm, in one small array: written once and read by every reduction.
        winner = jnp.where((valid > 0) & (slope > 0), winner, arms)
        winner = lax.optimization_barrier(winner.astype(jnp.int8 if arms < 127 else jnp.int32))

        def along(column: Array) -> tuple[Array, ...]:
            """Σ x_i over the rounds that each arm wins: one reduction with an output per arm."""
            weighted = column if bonus.hard else column * slope
            terms = tuple(jnp.where(winner == arm, weighted, 0.0) for arm in range(arms))
            zeros = tuple(jnp.zeros(()) for _ in terms)
            return lax.reduce(terms, zeros, lambda x, y: tuple(map(jnp.add, x, y)), (2,))

        gradient = jnp.stack([arm_sum for column in columns for arm_sum in along(column)])
        return value.reshape(-1), gradient.reshape(theta.shape), memo


class Products(FullPass):
    """The same for many chains on an accelerator, shared parameters: one product per seed.

    Settings of a sweep share their seed's contexts. Those are read once per seed and multiplied
    with the parameters of all settings. The gradient reads the features of the best arms alone.
    """

    def begin(self, memo: Any, rows: Rows, theta: Theta) -> Float[Array, "seeds arms room dim"]:
        """The contexts, once per seed, with an arm's features side by side."""
        del memo, theta
        contexts = rows.contexts
        assert contexts is not None
        seeds = contexts.shape[2] // self.spec.layout.settings
        return jnp.transpose(contexts[:, :, :seeds], (2, 1, 3, 0))

    def end(self, memo: Any) -> tuple[()]:
        return ()

    def _grouped(self, x: Float[Array, "*lead chains"]) -> Float[Array, "seeds settings *lead"]:
        """Chains taken apart into seeds and settings."""
        apart = x.reshape(*x.shape[:-1], self.spec.layout.settings, -1)
        return jnp.moveaxis(apart, (-1, -2), (0, 1))

    def _best(
        self, contexts: Float[Array, "seeds arms room dim"], theta: Theta
    ) -> tuple[Float[Array, "seeds settings room"], Int[Array, "seeds settings room"]]:
        """The largest score of every round, and the first arm that has it."""
        scores = jnp.einsum(
            "sgd,sard->sgar", self._grouped(theta[:, 0]), contexts, precision=lax.Precision.HIGHEST
        )
        arms = lax.broadcasted_iota(jnp.int32, scores.shape, 2)

        def better(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
            first = (one[0] > other[0]) | ((one[0] == other[0]) & (one[1] < other[1]))
            return jnp.where(first, one[0], other[0]), jnp.where(first, one[1], other[1])

        nothing = (jnp.float32(-jnp.inf), jnp.int32(0))
        best, winner = lax.reduce((scores, arms), nothing, better, (2,))
        return best, winner

    def _parts(self, rows: Rows) -> tuple[Bonus, Float[Array, " room"]]:
        """The bonus by seed and setting, and how much each round counts."""
        bonus = jax.tree.map(lambda x: self._grouped(x) if x.ndim else x, self.bonus)
        every = rows.slice(0, rows.capacity)
        return bonus, bonus.weighed(every.valid, every.numbers)

    def evaluate(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Any]:
        del uniform
        bonus, counts = self._parts(rows)
        best, winner = self._best(memo, theta)
        seeds, _, room = best.shape
        chosen = memo[jnp.arange(seeds)[:, None, None], winner, jnp.arange(room)]
        weights = bonus.slope(best) * counts
        gradient = jnp.sum(weights[..., None] * chosen, axis=2)
        value = jnp.sum(bonus.phi(best) * counts, axis=-1)
        return value.T.reshape(-1), gradient.T.reshape(theta.shape), memo

    def value(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        del uniform
        bonus, counts = self._parts(rows)
        best, _ = self._best(memo, theta)
        return jnp.sum(bonus.phi(best) * counts, axis=-1).T.reshape(-1), memo
