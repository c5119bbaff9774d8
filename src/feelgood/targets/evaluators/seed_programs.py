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

from feelgood.targets.bonus import Bonus
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows
from feelgood.targets.room import SMALLEST_ROOM
from feelgood.targets.sums import Theta, Value

#: The shortest side of a product that Triton takes.
SHORTEST_SIDE = 16
#: Three products of rounded numbers are as exact as one of float32 numbers, but for the last bits.
NEARLY_EXACT: Any = lax.DotAlgorithmPreset.TF32_TF32_F32_X3


class Spread(NamedTuple):
    """How a program is spread: rounds of a tile, times 32 threads, loads that are under way."""

    tile: int = 128
    warps: int = 4
    stages: int = 3
    product: Any = NEARLY_EXACT


SPREAD = Spread()


class SeedPrograms(Evaluator):
    """Every stored context up to the last one, read once per seed, shared parameters.

    The memo has the contexts, once per seed, with the features of an arm side by side. So a program
    reads its tile in one piece, and a winner's features too. Nobody else keeps them.
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

    def init(self) -> Float[Array, "seeds arms room dim"]:
        return jnp.zeros((self._seeds, self.spec.arms, SMALLEST_ROOM, self.spec.dim))

    def reserve(self, memo: Any, rounds: int) -> Float[Array, "seeds arms room dim"]:
        extra = max(0, rounds - memo.shape[2])
        return jnp.pad(memo, ((0, 0), (0, 0), (0, extra), (0, 0)))

    def extend(self, memo: Any, rows: Rows, context: Float[Array, "dim arms chains"]) -> Any:
        memo = self.reserve(memo, rows.capacity)
        by_seed = jnp.transpose(context[..., : self._seeds])
        return memo.at[:, :, rows.filled - 1].set(by_seed)

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
        width = max(SHORTEST_SIDE, 1 << (settings - 1).bit_length())

        def by_seed(x: Float[Array, "*lead chains"]) -> Float[Array, "seeds width *lead"]:
            """Chains taken apart into seeds and settings; there is room for more settings."""
            apart = jnp.moveaxis(x.reshape(*x.shape[:-1], settings, -1), (-1, -2), (0, 1))
            more = [(0, 0), (0, width - settings), *[(0, 0)] * (apart.ndim - 2)]
            return jnp.pad(apart, more, mode="edge")

        value, gradient = tile_sums(
            jax.tree.map(lambda x: by_seed(jnp.broadcast_to(x, (chains,))), self.bonus),
            by_seed(theta[:, 0]),
            memo,
            jnp.minimum(rows.filled, memo.shape[2]),
            settings=settings,
            with_gradient=with_gradient,
            interpreted=self.spec.layout.steps == "interpreted",
        )
        # The tiles' sums are added in one order, whatever the programs' order was.
        total = jnp.sum(value, axis=1)[:, :settings].T.reshape(-1)
        if gradient is None:
            return total, None
        slope = jnp.sum(gradient, axis=1)[:, :settings, : self.spec.dim]
        return total, slope.T.reshape(theta.shape)


def parts_of_vector(dim: int) -> list[tuple[int, int]]:
    """Where each part of a vector begins, and how long it is: a power of two, 16 at least.

    The last one may be longer than what is left.
    """
    parts, start = [], 0
    while start < dim:
        length = max(SHORTEST_SIDE, 1 << ((dim - start).bit_length() - 1))
        parts.append((start, length))
        start += length
    return parts


def tile_sums(
    bonus: Bonus,
    theta: Float[Array, "seeds width dim"],
    contexts: Float[Array, "seeds arms room dim"],
    filled: Int[Array, ""],
    *,
    settings: int,
    with_gradient: bool,
    interpreted: bool,
) -> tuple[Float[Array, "seeds tiles width"], Float[Array, "seeds tiles width padded"] | None]:
    """Σ w_s φ and its gradient over the rounds of each tile, for every setting of every seed.

    All leaves of `bonus` are [seeds, width]; of these, the first `settings` count.
    """
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    seeds, arms, room, dim = contexts.shape
    width, tiles = theta.shape[1], -(-room // SPREAD.tile)
    padded = sum(length for _, length in parts_of_vector(dim))
    leaves, structure = jax.tree.flatten(bonus)

    program = functools.partial(
        _write_sums,
        structure=structure,
        settings=settings,
        product=lax.Precision.HIGHEST if interpreted else SPREAD.product,
    )

    def of_seed(*shape: int) -> Any:
        return pallas.BlockSpec((None, *shape), lambda s, t: (s, *[0] * len(shape)))

    def of_tile(*shape: int) -> Any:
        return pallas.BlockSpec((None, None, *shape), lambda s, t: (s, t, *[0] * len(shape)))

    outputs = [(width,), (width, padded)][: 1 + with_gradient]
    call = pallas.pallas_call(
        program,
        grid=(seeds, tiles),
        in_specs=[
            pallas.BlockSpec((1,), lambda s, t: (0,)),
            of_seed(width, padded),
            of_seed(arms, room, dim),
            *[of_seed(width) for _ in leaves],
        ],
        out_shape=[jax.ShapeDtypeStruct((seeds, tiles, *x), jnp.float32) for x in outputs],
        out_specs=[of_tile(*x) for x in outputs],
        compiler_params=triton.CompilerParams(num_warps=SPREAD.warps, num_stages=SPREAD.stages),
        interpret=interpreted,
    )
    longer = jnp.pad(theta, ((0, 0), (0, 0), (0, padded - dim)))
    value, *gradient = call(filled.reshape(1), longer, contexts, *leaves)
    return value, gradient[0] if gradient else None


def _write_sums(
    filled: Any,
    theta: Any,
    contexts: Any,
    *others: Any,
    structure: Any,
    settings: int,
    product: Any,
) -> None:
    """The program: the sums of one seed's tile. All arrays are in memory."""
    from jax.experimental import pallas

    first, last = pallas.program_id(1) * SPREAD.tile, filled[0]
    rounds = first + jnp.arange(SPREAD.tile, dtype=jnp.int32)
    parts = parts_of_vector(contexts.shape[-1])
    tile = _Tile(contexts, parts, rounds=rounds, here=rounds < last, product=product)
    read, written = others[: structure.num_leaves], others[structure.num_leaves :]
    bonus = jax.tree.unflatten(structure, [ref[...] for ref in read])
    # A tile behind the last round looks at no arm.
    best, winner = tile.best(theta, contexts.shape[0] * (first < last).astype(jnp.int32))
    counts = bonus.weighed(tile.here.astype(jnp.float32), rounds)
    written[0][...] = jnp.sum(jnp.where(tile.here, bonus.phi(best) * counts, 0.0), axis=1)
    if len(written) > 1:
        pull = jnp.where(tile.here, bonus.slope(best) * counts, 0.0)
        tile.contract(pull, winner, settings, written[1])


class _Tile(NamedTuple):
    """What a program sees: some rounds of a seed, in memory."""

    #: [arms, room, dim].
    contexts: Any
    parts: list[tuple[int, int]]
    rounds: Int[Array, " tile"]
    #: Which of the rounds there are.
    here: Bool[Array, " tile"]
    product: Any

    def features(
        self, arm: Int[Array, "*tile"], part: tuple[int, int], wanted: Bool[Array, " tile"]
    ) -> Float[Array, "tile part"]:
        """A part of what an arm showed, or each round's own arm; 0 where it is not wanted."""
        from jax.experimental.pallas import triton

        start, length = part
        shape, dim = (len(self.rounds), length), self.contexts.shape[-1]
        entries = lax.broadcasted_iota(jnp.int32, shape, 1) + start
        index = (
            jnp.broadcast_to(arm[:, None], shape) if arm.ndim else arm,
            jnp.broadcast_to(self.rounds[:, None], shape),
            entries,
        )
        mask = jnp.broadcast_to(wanted[:, None], shape)
        if start + length > dim:
            mask = mask & (entries < dim)
        return triton.load(self.contexts.at[index], mask=mask, other=0.0)

    def best(
        self, theta: Any, arms: Int[Array, ""]
    ) -> tuple[Float[Array, "width tile"], Int[Array, "width tile"]]:
        """The largest score of every round for every setting, and the first arm that has it."""
        thetas = [theta[:, start : start + length] for start, length in self.parts]
        shape = (len(thetas[0]), len(self.rounds))

        def compare(arm: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
            score = jnp.zeros(shape)
            for some, part in zip(thetas, self.parts, strict=True):
                score += lax.dot_general(
                    some,
                    self.features(arm, part, self.here),
                    (((1,), (1,)), ((), ())),
                    precision=self.product,
                    preferred_element_type=jnp.float32,
                )
            best, winner = carry
            wins = score > best
            return jnp.where(wins, score, best), jnp.where(wins, arm, winner)

        nothing = jnp.full(shape, -jnp.inf), jnp.zeros(shape, jnp.int32)
        return lax.fori_loop(0, arms, compare, nothing)

    def contract(
        self,
        pull: Float[Array, "width tile"],
        winner: Int[Array, "width tile"],
        settings: int,
        out: Any,
    ) -> None:
        """Write Σ pull · the winner's features for each setting: [width, padded]."""
        number = lax.broadcasted_iota(jnp.int32, pull.shape, 0)

        def one(setting: Int[Array, ""], carry: Any) -> Any:
            its = number == setting
            weights = jnp.sum(jnp.where(its, pull, 0.0), axis=0)
            arm = jnp.sum(jnp.where(its, winner, 0), axis=0)
            for start, length in self.parts:
                shown = self.features(arm, (start, length), weights != 0.0)
                out[setting, start : start + length] = jnp.sum(weights[:, None] * shown, axis=0)
            return carry

        lax.fori_loop(0, settings, one, 0)
