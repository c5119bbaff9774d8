"""Arrays as lists of single numbers, for `feelgood.numerics.written_out`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class CannotWriteOut(Exception):
    """The function does something that there is no rule for."""


class InMemory(NamedTuple):
    """A number in memory, which is read where it is used."""

    ref: Any
    place: tuple[int, ...]


class Product(NamedTuple):
    """Two tiles whose product may become part of a sum, which is then one operation."""

    left: Any
    right: Any


class Written(NamedTuple):
    """An array as a list of numbers, and its shape without the tile.

    A number of an array with a tile is a tile, or a single number that all threads share.
    """

    shape: tuple[int, ...]
    items: list[Any]

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> "Written":
        """The numbers in the places that a function of their positions gives them."""
        where = move(np.arange(len(self.items)).reshape(self.shape))
        return Written(where.shape, [self.items[k] for k in where.reshape(-1)])


class Stored(NamedTuple):
    """An array in memory."""

    ref: Any
    shape: tuple[int, ...]

    def entries(self) -> Written:
        """Its numbers, none of which has been read."""
        return Written(self.shape, [InMemory(self.ref, place) for place in np.ndindex(self.shape)])


Kept = Written | Stored


def number_of(item: Any, dtype: Any) -> Any:
    """A number that can be computed with."""
    if isinstance(item, InMemory):
        number = item.ref[item.place]
        return number != 0 if dtype == jnp.bool_ else number
    if isinstance(item, Product):
        return item.left * item.right
    return item if isinstance(item, jax.Array) else np.asarray(item, dtype)[()]


def over_tile(number: Any, shape: tuple[int, ...]) -> Any:
    """The number, or a tile of it."""
    return number if np.shape(number) == shape else jnp.broadcast_to(number, shape)


def computed(constant: Any) -> Any:
    """A constant as the result of an operation: a loop and a branch can give nothing else."""
    join = lax.bitwise_or if constant.dtype == jnp.bool_ else lax.add
    return join(constant, np.zeros_like(constant))
