"""The random number generator: JAX's own Threefry-2x32, bit for bit, as straight-line code.

On CPU, JAX writes Threefry's twenty rounds as a loop over whole arrays. Written out, they are one
fused kernel, which runs faster and compiles several times as fast. The numbers are those of
`jax.random` with its default implementation, so `jax.random.normal(key(7), …)` is
`jax.random.normal(jax.random.key(7), …)`.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Float, Int, Integer, Key, UInt, UInt32

Words = tuple[UInt32[Array, "..."], UInt32[Array, "..."]]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
#: Where many keys have fewer numbers each than the first, they are drawn in pieces of the second.
_FEW, _PIECE = 256, 2048


@jax.jit
def threefry(key: Words, counter: Words) -> Words:
    """Threefry-2x32 with twenty rounds: two words of noise for each key and counter."""
    # With the operations of `lax`: those of `jax.numpy` take twice as long to trace.
    first, second, a, b = jnp.broadcast_arrays(*key, *counter)
    schedule = (first, second, first ^ second ^ _PARITY)
    a, b = lax.add(a, first), lax.add(b, second)
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            a = lax.add(a, b)
            left = lax.shift_left(b, np.uint32(distance))
            right = lax.shift_right_logical(b, np.uint32(32 - distance))
            b = lax.bitwise_xor(a, lax.bitwise_or(left, right))
        a = lax.add(a, schedule[(group + 1) % 3])
        b = lax.add(b, lax.add(schedule[(group + 2) % 3], np.uint32(group + 1)))
    return a, b


def _seed(seed: Integer[Array, ""]) -> UInt32[Array, " 2"]:
    """Seeds are at most 32 bits wide."""
    return jnp.stack([jnp.zeros((), jnp.uint32), seed.astype(jnp.uint32)])


def _counters(shape: tuple[int, ...]) -> Words:
    low = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return jnp.zeros_like(low), low


def _split(key: UInt32[Array, " 2"], shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    return jnp.stack(threefry((key[0], key[1]), _counters(shape)), axis=-1)


def _random_bits(
    key: UInt32[Array, " 2"], bit_width: int, shape: tuple[int, ...]
) -> UInt[Array, "..."]:
    high, low = threefry((key[0], key[1]), _counters(shape))
    if bit_width == 64:
        return (high.astype(jnp.uint64) << np.uint64(32)) | low.astype(jnp.uint64)
    return (high ^ low).astype(f"uint{bit_width}")


def _fold_in(key: UInt32[Array, " 2"], data: Integer[Array, ""] | int) -> UInt32[Array, " 2"]:
    counter = (jnp.zeros((), jnp.uint32), jnp.asarray(data, jnp.uint32))
    words = threefry((key[0], key[1]), counter)
    # Fused into the draws, the derivation of a key would be computed for every number again.
    return lax.optimization_barrier(jnp.stack(words))


THREEFRY = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="feelgood_threefry2x32",
    tag="fgfry",
)


def key(seed: Integer[Array, ""] | int) -> Key[Array, ""]:
    """The key of a seed."""
    return jax.random.key(seed, impl=THREEFRY)


def normals(key: Key[Array, ""], count: int) -> Float[Array, " count"]:
    """`count` standard normals: those of `jax.random.normal(key, (count,))`.

    Under `vmap`, few numbers from each of many keys are drawn as one long array, in pieces. On CPU
    a loop over few numbers inside one over many keys is slow. The loop over the pieces keeps the
    compiler from computing a number again wherever it is used.
    """
    if jax.random.key_impl(key) != THREEFRY:
        return jax.random.normal(key, (count,))
    return _normals(count)(jax.random.key_data(key))


def normals_from(key: Key[Array, ""], first: Int[Array, ""], count: int) -> Float[Array, " count"]:
    """Those of `normals` from number `first` on, drawn in the kernel that uses them."""
    words = jax.random.key_data(key)
    counter = jnp.asarray(first, jnp.uint32) + lax.iota(jnp.uint32, count)
    return _to_normal(_bits((words[0], words[1], counter)))


@functools.cache
def _normals(count: int) -> Callable[[Array], Array]:
    """From the words of keys to `count` normals each."""

    @jax.custom_batching.custom_vmap
    def draw(words: UInt32[Array, "*keys 2"]) -> Float[Array, "*keys count"]:
        keys = words.shape[:-1]
        each = (math.prod(keys), count)
        first, second = (words[..., i].reshape(-1, 1) for i in range(2))
        parts = tuple(jnp.broadcast_to(x, each) for x in (first, second, _counters((count,))[1]))
        if count >= _FEW or math.prod(each) <= _PIECE or jax.default_backend() != "cpu":
            return _to_normal(_bits(parts)).reshape(*keys, count)
        pieces = tuple(_in_pieces(part) for part in parts)
        drawn = lax.map(lambda part: _to_normal(_bits(part)), pieces)
        return drawn.reshape(-1)[: math.prod(each)].reshape(*keys, count)

    @draw.def_vmap
    def _(size: int, batched: list[bool], words: Array) -> tuple[Array, bool]:
        del size, batched  # there is one argument, and its new axis leads
        return draw(words), True

    return draw


def _in_pieces(x: UInt32[Array, "..."]) -> UInt32[Array, "pieces length"]:
    """The numbers in order, with zeros behind the last."""
    return jnp.pad(x.reshape(-1), (0, -x.size % _PIECE)).reshape(-1, _PIECE)


def _bits(parts: tuple[UInt32[Array, "..."], ...]) -> UInt32[Array, "..."]:
    """32 random bits for two words of a key and a counter below 2³²."""
    first, second, counter = parts
    high, low = threefry((first, second), (jnp.zeros_like(counter), counter))
    return high ^ low


def _to_normal(bits: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """√2 erf⁻¹(u) with u in (−1, 1) from the upper 23 bits, as `jax.random.normal` does it."""
    mantissa = (bits >> np.uint32(9)) | np.uint32(0x3F800000)
    zero_to_one = lax.bitcast_convert_type(mantissa, jnp.float32) - np.float32(1)
    low = np.nextafter(np.float32(-1), np.float32(0))
    u = jnp.maximum(low, zero_to_one * (np.float32(1) - low) + low)
    return np.float32(np.sqrt(2)) * lax.erf_inv(u)
