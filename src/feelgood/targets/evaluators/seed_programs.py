"""The full pass as programs of an accelerator: one group of threads per seed and tile of rounds.

Where arms have features of their own, a gradient reads all of them in every round, and an
accelerator does little else. A program here reads the features of a tile once, for all settings of
its seed. Neither scores nor winners are ever in memory: from the features come the sums of a tile.

It is made by Pallas, for Triton; see `feelgood.numerics.chain_programs`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from feelgood.numerics import chain_programs
from feelgood.numerics.written_out import Machine
from feelgood.targets.bonus import Bonus
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows
from feelgood.targets.room import SMALLEST_ROOM
from feelgood.targets.sums import Theta, Value

#: Settings of a seed that are looked at together: their scores and winners are in registers.
MOST_SETTINGS = 16


class Spread(NamedTuple):
    """How a program is spread: rounds of a tile, and how many times 32 threads."""

    tile: int = 128
    warps: int = 1


SPREAD = Spread()


class SeedPrograms(Evaluator):
    """Every stored context up to the last one, read once per seed, shared parameters.

    The memo has the contexts, once per seed, with the rounds of a feature side by side: each thread
    has rounds of its own, and reads them in one piece. Nobody else keeps them.
    """

    @property
    def keeps_contexts(self) -> bool:
        return True

    @property
    def reads_filled(self) -> bool:
        return True

    @property
    def _seeds(self) -> int:
        return self.spec.layout.chains // self.spec.layout.settings

    def init(self) -> Float[Array, "seeds arms dim room"]:
        return jnp.zeros((self._seeds, self.spec.arms, self.spec.dim, _whole_tiles(SMALLEST_ROOM)))

    def reserve(self, memo: Any, rounds: int) -> Float[Array, "seeds arms dim room"]:
        extra = max(0, _whole_tiles(rounds) - memo.shape[3])
        return jnp.pad(memo, ((0, 0), (0, 0), (0, 0), (0, extra)))

    def extend(self, memo: Any, rows: Rows, context: Float[Array, "dim arms chains"]) -> Any:
        memo = self.reserve(memo, rows.capacity)
        by_seed = jnp.transpose(context[..., : self._seeds])
        return memo.at[:, :, :, rows.filled - 1].set(by_seed)

    def evaluate(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Theta, Any]:
        del uniform
        value, gradient = self._sums(memo, rows, theta, with_gradient=True)
        assert gradient is not None
        return value, gradient, memo

    def value(
        self, memo: Any, rows: Rows, theta: Theta, uniform: Float[Array, "draws *lanes"]
    ) -> tuple[Value, Any]:
        del uniform
        return self._sums(memo, rows, theta, with_gradient=False)[0], memo

    def _sums(
        self, memo: Any, rows: Rows, theta: Theta, *, with_gradient: bool
    ) -> tuple[Value, Theta | None]:
        settings, chains = self.spec.layout.settings, self.spec.layout.chains

        def by_seed(x: Float[Array, "*lead chains"]) -> Float[Array, "seeds settings *lead"]:
            """Chains taken apart into seeds and settings."""
            return jnp.moveaxis(x.reshape(*x.shape[:-1], settings, -1), (-1, -2), (0, 1))

        bonus = jax.tree.map(lambda x: by_seed(jnp.broadcast_to(x, (chains,))), self.bonus)
        vectors, values, gradients = by_seed(theta[:, 0]), [], []
        for start in range(0, settings, MOST_SETTINGS):
            some = slice(start, start + MOST_SETTINGS)
            value, gradient = tile_sums(
                jax.tree.map(lambda x, some=some: x[:, some], bonus),
                vectors[:, some],
                memo,
                jnp.minimum(rows.filled, memo.shape[3]),
                with_gradient=with_gradient,
                interpreted=self.spec.layout.steps == "interpreted",
            )
            # The tiles' sums are added in one order, whatever the programs' order was.
            values.append(jnp.sum(value, axis=1))
            if gradient is not None:
                gradients.append(jnp.sum(gradient, axis=1))
        total = jnp.concatenate(values, axis=1).T.reshape(-1)
        if not gradients:
            return total, None
        return total, jnp.concatenate(gradients, axis=1).T.reshape(theta.shape)


def _whole_tiles(rounds: int) -> int:
    """Room for so many rounds that ends with a tile, so that tiles are read without a mask."""
    return -(-rounds // SPREAD.tile) * SPREAD.tile


def tile_sums(
    bonus: Bonus,
    theta: Float[Array, "seeds settings dim"],
    contexts: Float[Array, "seeds arms dim room"],
    filled: Int[Array, ""],
    *,
    with_gradient: bool,
    interpreted: bool,
) -> tuple[Float[Array, "seeds tiles settings"], Float[Array, "seeds tiles settings dim"] | None]:
    """Σ w_s φ and its gradient over the rounds of each tile, for every setting of every seed.

    All leaves of `bonus` are [seeds, settings].
    """
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    seeds, arms, dim, room = contexts.shape
    settings, tiles = theta.shape[1], room // SPREAD.tile
    leaves, structure = jax.tree.flatten(bonus)

    def of_seed(*shape: int) -> Any:
        return pallas.BlockSpec((None, *shape), lambda s, t: (s, *[0] * len(shape)))

    def of_tile(*shape: int) -> Any:
        return pallas.BlockSpec((None, None, *shape), lambda s, t: (s, t, *[0] * len(shape)))

    outputs = [(settings,), (settings, dim)][: 1 + with_gradient]
    call = pallas.pallas_call(
        functools.partial(
            _write_sums,
            structure=structure,
            machine=Machine() if interpreted else chain_programs.Triton(),
        ),
        grid=(seeds, tiles),
        in_specs=[
            pallas.BlockSpec((1,), lambda s, t: (0,)),
            of_seed(settings, dim),
            of_seed(arms, dim, room),
            *[of_seed(settings) for _ in leaves],
        ],
        out_shape=[jax.ShapeDtypeStruct((seeds, tiles, *x), jnp.float32) for x in outputs],
        out_specs=[of_tile(*x) for x in outputs],
        compiler_params=triton.CompilerParams(num_warps=SPREAD.warps, num_stages=1),
        interpret=interpreted,
    )
    value, *gradient = call(filled.reshape(1), theta, contexts, *leaves)
    return value, gradient[0] if gradient else None


def _write_sums(
    filled: Any, theta: Any, contexts: Any, *others: Any, structure: Any, machine: Machine
) -> None:
    """The program: the sums of one seed's tile. All arrays are in memory."""
    from jax.experimental import pallas

    first, last = pallas.program_id(1) * SPREAD.tile, filled[0]
    rounds = first + jnp.arange(SPREAD.tile, dtype=jnp.int32)
    tile = _Tile(contexts, rounds=rounds, here=rounds < last)
    read, written = others[: structure.num_leaves], others[structure.num_leaves :]
    # A tile behind the last round looks at no arm.
    arms = contexts.shape[0] * (first < last).astype(jnp.int32)
    best, winners = tile.best(theta, arms, machine)
    for setting, (score, winner) in enumerate(zip(best, winners, strict=True)):
        bonus = jax.tree.unflatten(structure, [ref[setting] for ref in read])
        counts = bonus.weighed(tile.here.astype(jnp.float32), rounds)
        value = jnp.where(tile.here, bonus.phi(score) * counts, 0.0)
        written[0][setting] = jnp.sum(value)
        if len(written) > 1:
            pull = jnp.where(tile.here, bonus.slope(score) * counts, 0.0)
            tile.contract(pull, winner, setting, written[1])


class _Tile(NamedTuple):
    """What a program sees: some rounds of a seed, in memory."""

    #: [arms, dim, room].
    contexts: Any
    rounds: Int[Array, " tile"]
    #: Which of the rounds there are.
    here: Bool[Array, " tile"]

    def feature(
        self, arm: Int[Array, "*tile"], entry: int, wanted: Bool[Array, " tile"] | None = None
    ) -> Float[Array, " tile"]:
        """An entry of what an arm showed, or each round's own arm; 0 where it is not wanted."""
        from jax.experimental.pallas import triton

        place = self.contexts.at[arm, entry, self.rounds]
        other = None if wanted is None else 0.0
        shown: Array = triton.load(place, mask=wanted, other=other)
        return shown

    def best(
        self, theta: Any, arms: Int[Array, ""], machine: Machine
    ) -> tuple[list[Float[Array, " tile"]], list[Int[Array, " tile"]]]:
        """The largest score of every round, by setting, and the first arm that has it."""
        (settings, dim), shape = theta.shape, self.rounds.shape

        def compare(arm: Int[Array, ""], carry: Any) -> Any:
            # Parameters are read in every turn: kept all the while, they are too many.
            machine.forget()
            scores = [jnp.zeros(shape)] * settings
            for entry in range(dim):
                shown = self.feature(arm, entry)
                for k in range(settings):
                    factor = jnp.broadcast_to(theta[k, entry], shape)
                    scores[k] = machine.multiply_add(factor, shown, scores[k])
            out = []
            for score, (best, winner) in zip(scores, carry, strict=True):
                wins = score > best
                out.append((jnp.where(wins, score, best), jnp.where(wins, arm, winner)))
            return out

        nothing = [(jnp.full(shape, -jnp.inf), jnp.zeros(shape, jnp.int32))] * settings
        found = lax.fori_loop(0, arms, compare, nothing)
        return [best for best, _ in found], [winner for _, winner in found]

    def contract(
        self, pull: Float[Array, " tile"], winner: Int[Array, " tile"], setting: int, out: Any
    ) -> None:
        """Write Σ pull · the winner's features for a setting of [settings, dim]."""
        for entry in range(self.contexts.shape[1]):
            shown = self.feature(winner, entry, pull != 0.0)
            out[setting, entry] = jnp.sum(pull * shown)
