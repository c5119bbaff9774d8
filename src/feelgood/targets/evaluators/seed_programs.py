"""The full pass as programs of an accelerator: one group of threads per seed and tile of rounds.

Where arms have features of their own, a gradient reads all of them in every round, and an
accelerator does little else. A program here reads the features of a tile once, for all settings of
its seed. Neither scores nor winners are ever in memory: from the features come the sums of a tile.

It is made by Pallas, for Triton; see `feelgood.numerics.chain_programs`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.bonus import Bonus
from feelgood.targets.evaluators.evaluator import Evaluator
from feelgood.targets.history import Rows
from feelgood.targets.room import SMALLEST_ROOM
from feelgood.targets.sums import Theta, Value

#: The shortest side of a product that Triton takes.
SHORTEST_SIDE = 16
#: Three products of rounded numbers are as exact as one of float32 numbers, but for the last bits.
EXACT: Any = lax.DotAlgorithmPreset.TF32_TF32_F32_X3


class Spread(NamedTuple):
    """How a program is spread: rounds of a tile, times 32 threads, loads that are under way."""

    tile: int = 128
    warps: int = 4
    stages: int = 3
    product: Any = EXACT


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


def parts_of(dim: int) -> list[tuple[int, int]]:
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
    width, tile = theta.shape[1], SPREAD.tile
    tiles, parts = -(-room // tile), parts_of(dim)
    padded = sum(length for _, length in parts)
    theta = jnp.pad(theta, ((0, 0), (0, 0), (0, padded - dim)))
    leaves, structure = jax.tree.flatten(bonus)
    product = lax.Precision.HIGHEST if interpreted else SPREAD.product

    def program(*refs: Any) -> None:
        filled_ref, theta_ref, contexts_ref, *others = refs
        first, last = pallas.program_id(1) * tile, filled_ref[0]
        rounds = first + jnp.arange(tile, dtype=jnp.int32)
        here = rounds < last
        own = jax.tree.unflatten(structure, [ref[...] for ref in others[: len(leaves)]])

        def features(arm: Any, part: tuple[int, int], mask: Array) -> Float[Array, "tile part"]:
            """What an arm showed, or each round's arm: 0 where the mask says so."""
            start, length = part
            shape = (tile, length)
            entries = lax.broadcasted_iota(jnp.int32, shape, 1) + start
            index = (
                jnp.broadcast_to(arm[:, None], shape) if jnp.ndim(arm) else arm,
                jnp.broadcast_to(rounds[:, None], shape),
                entries,
            )
            wanted = jnp.broadcast_to(mask[:, None], shape)
            if start + length > dim:
                wanted = wanted & (entries < dim)
            return triton.load(contexts_ref.at[index], mask=wanted, other=0.0)

        thetas = [theta_ref[:, start : start + length] for start, length in parts]

        def compare(arm: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            best, winner = carry
            score = jnp.zeros((width, tile))
            for some, part in zip(thetas, parts, strict=True):
                score += lax.dot_general(
                    some,
                    features(arm, part, here),
                    (((1,), (1,)), ((), ())),
                    precision=product,
                    preferred_element_type=jnp.float32,
                )
            wins = score > best
            return jnp.where(wins, score, best), jnp.where(wins, arm, winner)

        blank = jnp.full((width, tile), -jnp.inf), jnp.zeros((width, tile), jnp.int32)
        best, winner = lax.fori_loop(0, jnp.where(first < last, arms, 0), compare, blank)
        counts = own.weighed(here.astype(jnp.float32), rounds)
        value_ref = others[len(leaves)]
        value_ref[...] = jnp.sum(jnp.where(here, own.phi(best) * counts, 0.0), axis=1)
        if not with_gradient:
            return
        gradient_ref = others[len(leaves) + 1]
        pull = jnp.where(here, own.slope(best) * counts, 0.0)
        number = lax.broadcasted_iota(jnp.int32, (width, tile), 0)

        def contract(setting: Any, carry: Any) -> Any:
            its = number == setting
            weights = jnp.sum(jnp.where(its, pull, 0.0), axis=0)
            arm = jnp.sum(jnp.where(its, winner, 0), axis=0)
            for start, length in parts:
                shown = features(arm, (start, length), weights != 0.0)
                total = jnp.sum(weights[:, None] * shown, axis=0)
                gradient_ref[setting, start : start + length] = total
            return carry

        lax.fori_loop(0, settings, contract, 0)

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
    value, *gradient = call(filled.reshape(1), theta, contexts, *leaves)
    return value, gradient[0] if gradient else None
