"""Functions of one chain as programs, interpreted: they compute what the functions do."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from feelgood.numerics import lanes
from feelgood.numerics.chain_programs import THREADS, Chains, each_chain, read_tiles, tile_numbers
from feelgood.numerics.equations import needed_equations, used_arguments
from feelgood.numerics.written_arrays import CannotWriteOut

CHAINS, TILE = 3, THREADS.tile


def numbers(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(list(shape)).normal(size=shape), jnp.float32)


def moved(x: Any, y: Any) -> Any:
    """What only moves numbers about."""
    both = jnp.stack([x, y.T], axis=1)
    parts = lax.unstack(both), lax.unstack(both, axis=1), list(both), lax.unstack(x[0])
    moved = both.reshape(4, 3)[1:, ::2], jnp.concatenate([x, y.T]), both[:, 0, 1], x[..., None]
    return moved, parts


def calculated(x: Any, y: Any) -> Any:
    """Operations number by number, also of arrays with other shapes, and sums over axes."""
    z = jnp.where(x > 0.0, jnp.exp(x), -x) / (1.0 + y[0, 0] ** 2) + jnp.arange(3)
    sums = jnp.sum(z), jnp.max(z, axis=0), jnp.min(z, axis=1), jnp.any(z > 2.0, axis=1)
    return z, sums, lanes.matvec(x[:, :2], y[0]), z < y[:, :1].T, (z > 1.0).astype(jnp.float32)


def looped(x: Any, y: Any) -> Any:
    """Loops of a known and of an unknown length, and branches, one in the other."""

    def turn(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        a, count = carry
        a = lax.cond(count % 2 == 0, lambda: a + i, lambda: 0.5 * a)
        more = lax.while_loop(lambda b: jnp.sum(b) < 3.0, lambda b: b + jnp.abs(y.T) + 0.1, a)
        return more, count + 1

    first = lax.fori_loop(0, 4, turn, (x, jnp.asarray(1)))
    flags = jnp.asarray(False), jnp.asarray(7.0)
    return first, lax.fori_loop(0, 2, lambda _, flag: (jnp.asarray(True), flag[1]), flags)


def called(x: Any, y: Any) -> Any:
    """Functions that call others."""
    return jax.nn.softplus(x), jax.nn.sigmoid(y), jnp.clip(x, -0.3, 0.4), jnp.floor_divide(7, 2)


@pytest.mark.parametrize("function", [moved, calculated, looped, called], ids=lambda f: f.__name__)
def test_a_program_computes_what_the_function_does(function: Callable[[Any, Any], Any]) -> None:
    x, y = numbers(2, 3, CHAINS), numbers(3, 2, CHAINS)
    got = each_chain(function, (x, y), (Chains(-1), Chains(-1)), CHAINS, interpreted=True)
    for chain in range(CHAINS):
        want = jax.tree.leaves(function(x[..., chain], y[..., chain]))
        for one, expected in zip(jax.tree.leaves(got), want, strict=True):
            assert one.dtype == jnp.asarray(expected).dtype
            np.testing.assert_allclose(one[..., chain], expected, rtol=1e-5)


def test_arrays_have_their_chains_where_it_is_said() -> None:
    """On any axis, once for several chains, or once for all; truth values are no exception."""
    first, by_seed = numbers(CHAINS, 2), numbers(4, 2, 5)
    shared, scale, flags = numbers(2), jnp.asarray(3.0), jnp.asarray([True, False, True, True])

    def function(first: Any, by_seed: Any, shared: Any, scale: Any, flag: Any) -> Any:
        return first + scale * by_seed[:2, 0] * shared, ~flag

    places = (Chains(0), Chains(1, period=2), Chains(), Chains(), Chains(-1))
    arguments = (first, by_seed, shared, scale, flags[:CHAINS])
    got, other = each_chain(function, arguments, places, CHAINS, interpreted=True)
    for c in range(CHAINS):
        want = first[c] + 3.0 * by_seed[:2, c % 2, 0] * shared
        np.testing.assert_allclose(got[:, c], want, rtol=1e-6)
        assert other[c] == ~flags[c]


@pytest.mark.parametrize("start", [-5, 0, 77, 1000])
def test_tiles_are_read_added_up_and_summed(start: int) -> None:
    """A dynamic slice that would leave the array is moved back, as everywhere in JAX."""
    stored, theta = numbers(2, CHAINS, 3 * TILE + 40), numbers(2, 3, CHAINS)

    def function(stored: Any, theta: Any, start: Any) -> Any:
        def one(i: Any, sums: Any) -> Any:
            x = lax.dynamic_slice_in_dim(stored, start + i * TILE, TILE, axis=-1)
            scores = lanes.dot(theta[..., None], x[:, None])
            late = (start + i * TILE + jnp.arange(TILE) > 100).astype(jnp.float32)
            return sums + jnp.maximum(scores, 0.0) * late * x[:, None]

        sums = lax.fori_loop(0, start // TILE + 2, one, jnp.zeros((*theta.shape, TILE)))
        return jnp.sum(sums, axis=-1), jnp.sum(sums, axis=(0, 2)), jnp.sum(jnp.ones(TILE))

    arguments = (stored, theta, jnp.asarray(start))
    got = each_chain(
        function, arguments, (Chains(1), Chains(-1), Chains()), CHAINS, interpreted=True
    )
    for c in range(CHAINS):
        want = function(stored[:, c], theta[..., c], jnp.asarray(start))
        for one, expected in zip(got, want, strict=True):
            np.testing.assert_allclose(one[..., c], expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("first", [0, 5, 1000])
def test_the_tiles_of_a_turn_have_the_numbers_that_are_said(first: int) -> None:
    """In a program as outside of one, where they are cut out of the array."""
    stored, start = numbers(2, CHAINS, 2 * THREADS.stride), jnp.asarray(first)

    def function(stored: Any, start: Any) -> Any:
        chunk = read_tiles(stored, start, THREADS)
        weights = jnp.cos(jnp.arange(1.0 * TILE)) * jnp.ones((*chunk.shape[:-1], 1))
        return jnp.sum(chunk * weights, axis=-1)

    got = each_chain(function, (stored, start), (Chains(1), Chains()), CHAINS, interpreted=True)
    inside = int(np.clip(first, 0, THREADS.stride))
    places = tile_numbers(jnp.asarray(inside), THREADS)
    for c in range(CHAINS):
        np.testing.assert_allclose(got[..., c], function(stored[:, c], start), atol=1e-4)
        chunk = read_tiles(stored[:, c], start, THREADS).reshape(2, -1, TILE)
        np.testing.assert_array_equal(chunk, stored[:, c][:, jnp.stack(places)])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, few: jnp.sort(few), "operation sort"),
        (lambda x, few: lax.scan(lambda c, y: (c + y, c), 0.0, few)[1], "scan over an array"),
        (lambda x, few: jnp.sum(x), "used whole"),
        (lambda x, few: jnp.max(tile_of(x, few)), "reduce_max over a tile"),
        (lambda x, few: jnp.sum(tile_of(x, few).reshape(2, 2, -1)), "takes another shape"),
        (lambda x, few: jnp.sum(tile_of(x, few)[:, 1:]), "part of a tile"),
        (lambda x, few: jnp.sum(tile_of(x, few).T), "takes another place"),
        (lambda x, few: lax.unstack(tile_of(x, few), axis=1)[3], "tile taken apart"),
        (lambda x, few: tile_of(x, few) + np.arange(1.0 * TILE), "small constant"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_written_out_is_refused(
    function: Callable[[Any, Any], Any], reason: str
) -> None:
    arguments = numbers(2, 20 * TILE, CHAINS), numbers(4, CHAINS)
    with pytest.raises(CannotWriteOut, match=reason):
        each_chain(function, arguments, (Chains(-1), Chains(-1)), CHAINS, interpreted=True)


def tile_of(stored: Any, few: Any) -> Any:
    return lax.dynamic_slice_in_dim(stored, few[0].astype(jnp.int32), TILE, axis=1)


def test_loops_come_first_and_what_nobody_needs_is_left_out() -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        early = jnp.exp(x)
        looped = lax.fori_loop(0, 3, lambda _, a: a * y, y)
        del z
        return early + looped

    jaxpr = jax.make_jaxpr(function)(1.0, 2.0, 3.0)
    assert used_arguments(jaxpr) == [True, True, False]
    names = [equation.primitive.name for equation in needed_equations(jaxpr.jaxpr)]
    assert names.index("scan") < names.index("exp") < names.index("add")
