"""What a linear model has observed."""

import equinox as eqx
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Number
from feelgood.targets.history import Rows
from feelgood.targets.random_batches import BatchGrams
from feelgood.targets.room import unless_lost
from feelgood.targets.sums import Stats, Theta


class Data(eqx.Module):
    """What has been observed; `rows` and `grams` only where the energy or the kernel needs them."""

    stats: Stats
    rows: Rows | None
    count: Int[Array, ""]
    grams: BatchGrams | None = None

    def unless_lost(self, theta: Theta) -> Theta:
        """The parameters, or NaN where rounds were lost; see `room.unless_lost`."""
        rooms = [store.capacity for store in (self.rows, self.grams) if store is not None]
        return unless_lost(theta, self.count, min(rooms)) if rooms else theta

    def reserve(self, rounds: int) -> "Data":
        """The same with room for at least `rounds`."""
        rows, grams = self.rows, self.grams
        return Data(
            stats=self.stats,
            rows=None if rows is None else rows.reserve(rounds),
            count=self.count,
            grams=None if grams is None else grams.reserve(rounds),
        )

    def times(self, factor: Number) -> "Data":
        """Every round with this weight in all sums; rows have none."""
        grams = self.grams
        if grams is not None:
            grams = BatchGrams(grams=factor * grams.grams, size=grams.size)
        return Data(self.stats.times(factor), self.rows, self.count, grams)

    def add(
        self,
        context: Float[Array, "..."],
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
        seen: Float[Array, "*lanes"],
    ) -> "Data":
        """One more round; `seen` is the reward as the sums take it, see `scales.linear_reward`."""
        rows, grams = self.rows, self.grams
        return Data(
            stats=self.stats.add(x, block, seen),
            rows=None if rows is None else rows.add(context, x, arm, reward),
            count=self.count + 1,
            grams=None if grams is None else grams.add(x, block, self.count),
        )
