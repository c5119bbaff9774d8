"""What checks share: how they say what they found, and how they compare."""

import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

Findings = Iterator[str]


def said(error: Exception) -> str:
    """An exception as the end of a sentence."""
    text = " ".join(str(error).split()).rstrip(".")
    short = text if len(text) <= 200 else f"{text[:199]}…"
    return f"fails with {type(error).__name__}: {short}."


def kind_of(value: Any) -> str:
    """A value in a few words."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape) or ''}"
    return type(value).__name__


def structure_change(before: Any, after: Any) -> str | None:
    """How a state's structure changed, which must stay as it is."""
    structures: list[Any] = [jax.tree.structure(x) for x in (before, after)]
    if structures[0] != structures[1]:
        return "returns a state of another structure: return the same fields as init"
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    for old, new in pairs:
        if kind_of(old) != kind_of(new):
            return f"turns {kind_of(old)} of the state into {kind_of(new)}: keep shapes and types"
    return None


def same_program(one: Any, two: Any) -> bool:
    """Whether two traces are the same program, constants included."""
    # Programs with derivatives of their own print the addresses of functions.
    texts = [re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr.jaxpr)) for traced in (one, two)]
    consts = [[np.asarray(c) for c in t.jaxpr.consts if not _is_key(c)] for t in (one, two)]
    return texts[0] == texts[1] and all(np.array_equal(a, b) for a, b in zip(*consts, strict=True))


def _is_key(value: Any) -> bool:
    return jax.dtypes.issubdtype(getattr(value, "dtype", np.float32), jax.dtypes.prng_key)
