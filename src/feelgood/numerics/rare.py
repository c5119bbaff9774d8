"""Work that is seldom needed, such as estimates that are renewed a few times as data double.

In a compiled run it is a branch. A program for one live decision pays for a branch that it does not
take, too: XLA sets aside its memory and passes its constants in every call. Such a program leaves
the work out and says whether it was needed; then another one does the same step in full.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

_left_out: ContextVar[list[Any] | None] = ContextVar("left_out", default=None)


def rarely(needed: Bool[Array, "..."], work: Callable[[Any], Any], value: Any) -> Any:
    """`work(value)` if it is needed anywhere, else the value itself."""
    found, needed = _left_out.get(), jnp.any(needed)
    if found is None:
        return lax.cond(needed, work, lambda same: same, value)
    found.append(needed)
    return value


@contextlib.contextmanager
def left_out() -> Iterator[list[Bool[Array, ""]]]:
    """Leave rare work out while this block is traced, and find out where it was needed.

    What is found belongs to the trace of the block: the block must not be within a `vmap`, nor
    `rarely` within a loop of its own.
    """
    found: list[Any] = []
    token = _left_out.set(found)
    try:
        yield found
    finally:
        _left_out.reset(token)
