"""A state as few arrays: a compiled call costs several microseconds per array that it takes."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, UInt32

#: Leaves of more numbers than this stay arrays of their own, which no call needs to copy.
MOST_WORDS = 16_384


@dataclasses.dataclass(frozen=True)
class Packing:
    """Where the leaves of a tree lie: the small ones in one array of 32-bit words.

    Equal packings are equal and have the same hash, so that programs can be shared.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    #: Leaves of more words than this are arrays of their own.
    most: int

    @classmethod
    def of(cls, like: Any) -> "Packing":
        """For trees of these shapes. A key counts as the words that it is made of."""
        leaves, tree = jax.tree.flatten(like)
        shapes, dtypes = tuple(x.shape for x in leaves), tuple(x.dtype for x in leaves)
        return cls(tree, shapes, dtypes, MOST_WORDS)

    def __post_init__(self) -> None:
        for dtype in self.dtypes:
            assert _is_key(dtype) or np.dtype(dtype).itemsize in (1, 4), dtype

    def size(self, leaf: int) -> int:
        """Words of a leaf."""
        words = 2 if _is_key(self.dtypes[leaf]) else 1
        return words * math.prod(self.shapes[leaf])

    def is_large(self, leaf: int) -> bool:
        """Whether a leaf is an array of its own."""
        return self.size(leaf) > self.most

    @property
    def large(self) -> tuple[int, ...]:
        """The leaves that are arrays of their own."""
        return tuple(i for i in range(len(self.shapes)) if self.is_large(i))

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the words of each leaf begin; large ones have none."""
        out, at = [], 0
        for i in range(len(self.shapes)):
            out.append(at)
            at += 0 if self.is_large(i) else self.size(i)
        return (*out, at)

    def pack(self, value: Any) -> tuple[UInt32[Array, " words"], list[Array]]:
        """A tree as words and large leaves."""
        leaves = jax.tree.leaves(value)
        words = jnp.zeros(self.offsets[-1], jnp.uint32)
        small = {i: x for i, x in enumerate(leaves) if not self.is_large(i)}
        return self.replace(words, small), [leaves[i] for i in self.large]

    def replace(
        self, words: UInt32[Array, " words"], leaves: dict[int, Array]
    ) -> UInt32[Array, " words"]:
        """The words with other values of some small leaves."""
        # One after the other: a concatenation takes several times as long.
        for i, leaf in leaves.items():
            if self.size(i):
                words = lax.dynamic_update_slice(words, _words(leaf), (self.offsets[i],))
        return words

    def unpack(self, words: UInt32[Array, " words"], large: Sequence[Array]) -> Any:
        """The tree again."""
        rest = iter(large)
        leaves = [next(rest) if self.is_large(i) else self._leaf(words, i) for i in self._all]
        return jax.tree.unflatten(self.tree, leaves)

    @property
    def _all(self) -> range:
        return range(len(self.shapes))

    def _leaf(self, words: UInt32[Array, " words"], i: int) -> Array:
        start, dtype, shape = self.offsets[i], self.dtypes[i], self.shapes[i]
        part = words[start : start + self.size(i)]
        if _is_key(dtype):
            return jax.random.wrap_key_data(part.reshape(*shape, 2), impl=dtype._impl)
        if np.dtype(dtype).itemsize == 1:
            return part.reshape(shape).astype(dtype)
        return lax.bitcast_convert_type(part, dtype).reshape(shape)


def _is_key(dtype: Any) -> bool:
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def _words(leaf: Array) -> UInt32[Array, " words"]:
    if _is_key(leaf.dtype):
        return jax.random.key_data(leaf).reshape(-1)
    if leaf.dtype.itemsize == 1:
        return leaf.astype(jnp.uint32).reshape(-1)
    return lax.bitcast_convert_type(leaf, jnp.uint32).reshape(-1)


def as_leaf(value: Any, like: Any) -> Any:
    """An array as a leaf of a state; an error where it does not fit."""
    if jax.dtypes.issubdtype(like.dtype, jax.dtypes.prng_key):
        if not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.wrap_key_data(jnp.asarray(value), impl=like.dtype._impl)
    elif value.dtype != like.dtype:
        raise TypeError(f"{value.dtype} is not {like.dtype}")
    if value.shape != like.shape:
        raise TypeError(f"{value.shape} is not {like.shape}")
    return jnp.array(value)
