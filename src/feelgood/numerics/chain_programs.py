"""A function of one chain as a program of an accelerator: one group of threads per chain.

Carried out for all chains together, each operation of an inner step is a kernel, and an accelerator
takes longer to start a small kernel than to run it. Here all operations of a function are one
kernel. `feelgood.numerics.written_out` says how the kernel keeps a chain's numbers.

It is made by Pallas, for Triton. JAX announces that it will drop Triton from Pallas: then another
`Machine` is needed, or chains are played together again.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Shaped

from feelgood.numerics.equations import every_equation, used_arguments
from feelgood.numerics.machines import Machine
from feelgood.numerics.written_arrays import Stored
from feelgood.numerics.written_out import WriteOut


class Chains(NamedTuple):
    """Where an array has its chains: chain c is at place c of an axis, modulo `period` if given.

    Without an axis, all chains share the array.
    """

    axis: int | None = None
    period: int | None = None


class Threads(NamedTuple):
    """How a program is spread over threads."""

    #: The length of a tile. No other axis of an array may be as long.
    tile: int = 64
    #: Times 32 threads.
    warps: int = 2
    #: Tiles of a turn of the loop: so many reads, times the numbers that a thread reads at once.
    #: A store must have room for a turn.
    together: int = 2
    at_once: int = 4
    #: The most numbers that stay in registers from step to step. More are read anew at every step.
    kept: int = 128

    @property
    def stride(self) -> int:
        """Rounds of a turn of the loop."""
        return self.tile * self.together * self.at_once


#: What suits a linear model with a few dozen parameters. On an H200 a step of linear-20 takes
#: 10.6 µs, with one tile of reads at a time 11.8 (`bench/results/gpu-sweep-spreads.json`).
THREADS = Threads()


def each_chain(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    places: Any,
    chains: int,
    *,
    interpreted: bool,
) -> Any:
    """`function` of every chain's arguments; results have the chains on their last axis.

    `places` is a tree like that of the arguments, with `Chains` in the place of each array.
    `interpreted` runs the programs one after the other on any device, which is slow. Raises
    `CannotWriteOut` where there is no such program.
    """
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    leaves, structure = jax.tree.flatten(tuple(arguments))
    where = jax.tree.leaves(places, is_leaf=lambda x: isinstance(x, Chains))
    alone = [_of_one(leaf, place) for leaf, place in zip(leaves, where, strict=True)]
    jaxpr, shapes = jax.make_jaxpr(
        lambda *flat: function(*jax.tree.unflatten(structure, flat)), return_shape=True
    )(*alone)
    results, result_structure = jax.tree.flatten(shapes)
    used = [k for k, yes in enumerate(used_arguments(jaxpr)) if yes]
    writer = WriteOut(THREADS.tile, Machine() if interpreted else Triton(), THREADS.kept)

    def program(*refs: Any) -> None:
        stored = dict(zip(used, refs, strict=False))
        inputs = [Stored(stored.get(k), aval.shape) for k, aval in enumerate(alone)]
        outputs = writer.evaluate(jaxpr, inputs)
        for ref, value, aval in zip(refs[len(used) :], outputs, results, strict=True):
            numbers = writer.numbers(value, aval)
            for index, number in zip(np.ndindex(aval.shape), numbers, strict=True):
                ref[index] = number.astype(ref.dtype)

    call = pallas.pallas_call(
        program,
        out_shape=[jax.ShapeDtypeStruct((*x.shape, chains), _kept_as(x)) for x in results],
        grid=(chains,),
        in_specs=[_block(pallas, leaves[k].shape, where[k]) for k in used],
        out_specs=[_block(pallas, (*x.shape, chains), Chains(-1)) for x in results],
        # Threads without a tile would all do the same: a few are enough.
        compiler_params=triton.CompilerParams(
            num_warps=THREADS.warps if _has_tiles(jaxpr) else 1, num_stages=1
        ),
        interpret=interpreted,
    )
    out = call(*(leaves[k].astype(_kept_as(leaves[k])) for k in used))
    typed = [x.astype(aval.dtype) for x, aval in zip(out, results, strict=True)]
    return jax.tree.unflatten(result_structure, typed)


@functools.partial(jax.jit, static_argnums=2)
def read_tiles(
    store: Float[Array, "*lead room"], first: Int[Array, ""], threads: Threads
) -> Float[Array, "*lead together at_once tile"]:
    """A turn's tiles of a store, from its number `first` on; `tile_numbers` says what is where.

    The function is known by its name, for an accelerator has a better way.
    """
    chunk = lax.dynamic_slice_in_dim(store, first, threads.stride, axis=-1)
    shape = (*store.shape[:-1], threads.together, threads.tile, threads.at_once)
    return jnp.swapaxes(chunk.reshape(shape), -1, -2)


def tile_numbers(first: Int[Array, ""], threads: Threads) -> list[Int[Array, " tile"]]:
    """The places in the store of what `read_tiles` reads, tile by tile."""
    tile, at_once = threads.tile, threads.at_once
    starts = range(0, threads.stride, tile * at_once)
    return [
        first + (start + k) + at_once * jnp.arange(tile) for start in starts for k in range(at_once)
    ]


def _of_one(leaf: Shaped[Array, "..."], place: Chains) -> jax.ShapeDtypeStruct:
    """What one chain has of an array."""
    shape = list(leaf.shape)
    if place.axis is not None:
        del shape[place.axis]
    return jax.ShapeDtypeStruct(tuple(shape), leaf.dtype)


def _kept_as(x: Any) -> Any:
    """The type in memory: a program can neither read nor write truth values."""
    return jnp.int32 if x.dtype == jnp.bool_ else x.dtype


def _has_tiles(jaxpr: Any) -> bool:
    shapes = (x.aval.shape for one in every_equation(jaxpr) for x in one.outvars)
    return any(shape and shape[-1] == THREADS.tile for shape in shapes)


def _block(pallas: Any, shape: tuple[int, ...], place: Chains) -> Any:
    """The part of an array that a program sees."""
    if place.axis is None:
        return pallas.BlockSpec(shape, lambda c: (0,) * len(shape))
    axis = place.axis % len(shape)

    def first(c: Any) -> tuple[Any, ...]:
        own = c if place.period is None else c % place.period
        return tuple(own if k == axis else 0 for k in range(len(shape)))

    return pallas.BlockSpec(tuple(None if k == axis else n for k, n in enumerate(shape)), first)


class Triton(Machine):
    """What Triton has a better way for."""

    def multiply_add(
        self, a: Float[Array, " tile"], b: Float[Array, " tile"], c: Float[Array, " tile"]
    ) -> Float[Array, " tile"]:
        """As one instruction. The compiler would make two of it, so as to round twice."""
        from jax.experimental.pallas import triton

        [total] = triton.elementwise_inline_asm(
            "fma.rn.f32 $0, $1, $2, $3;",
            args=[a, b, c],
            constraints="=f,f,f,f",
            pack=1,
            result_shape_dtypes=[jax.ShapeDtypeStruct(c.shape, c.dtype)],
        )
        return total

    def apart(self, several: Float[Array, " tiles"], count: int) -> list[Float[Array, " tile"]]:
        """By halves: what has an even place, and what has an odd one. Nothing moves."""
        if count == 1:
            return [several]
        halves = lax.unstack(several.reshape(-1, 2), axis=1)
        parts = [self.apart(half, count // 2) for half in halves]
        return [part for pair in zip(*parts, strict=True) for part in pair]

    def sums(self, tiles: list[Float[Array, " tile"]]) -> list[Float[Array, ""]]:
        """All at once: threads wait for each other once, and not once per sum.

        Tiles are joined two by two on a new axis of length 2, and taken apart again after the sum.
        """
        levels = (len(tiles) - 1).bit_length()
        if levels == 0:
            return super().sums(tiles)
        joined = [*tiles, *[jnp.zeros_like(tiles[0])] * (2**levels - len(tiles))]
        for level in range(levels):
            halves = zip(joined[::2], joined[1::2], strict=True)
            joined = [lax.stack(pair, axis=level + 1) for pair in halves]
        apart = [jnp.sum(joined[0], axis=0)]
        for level in reversed(range(1, levels)):
            apart = [half for part in apart for half in lax.unstack(part, axis=level)]
        place = lax.iota(jnp.int32, 2)
        out = [jnp.sum(jnp.where(place == k, pair, 0.0)) for pair in apart for k in range(2)]
        return out[: len(tiles)]

    def add_at_first(
        self,
        sums: list[Float[Array, " tile"]],
        rows: list[Float[Array, " tile"]],
        scores: list[Float[Array, " tile"]],
        best: list[Float[Array, " tile"]],
    ) -> list[Float[Array, " tile"]]:
        """Additions under a condition; the compiler would choose between a number and 0 for each.

        The assembler finds the conditions that several of them share.
        """
        from jax.experimental.pallas import triton

        arms = len(scores)

        def added(place: int, arm: int) -> Float[Array, " tile"]:
            # `ne` and `eq` are both false where one of the two is not a number.
            tests = ["ne"] * arm + ["eq"] * (arm < arms - 1)
            lines = [
                f"setp.{test}{'.and' * (k > 0)}.f32 yes, ${k + 4}, $3{', yes' * (k > 0)};"
                for k, test in enumerate(tests)
            ]
            program = f"{' '.join(lines)} mov.f32 $0, $1; @yes add.rn.f32 $0, $1, $2;"
            [total] = triton.elementwise_inline_asm(
                f"{{ .reg .pred yes; {program} }}",
                args=[sums[place], rows[place // arms], *best, *scores[: len(tests)]],
                constraints=",".join(["=&f", *"f" * (3 + len(tests))]),
                pack=1,
                result_shape_dtypes=[jax.ShapeDtypeStruct(best[0].shape, best[0].dtype)],
            )
            return total

        return [added(place, place % arms) for place in range(len(sums))]

    def forget(self) -> None:
        """The compiler reads nothing earlier than a barrier that comes before it."""
        from jax.experimental.pallas import triton

        triton.debug_barrier()
