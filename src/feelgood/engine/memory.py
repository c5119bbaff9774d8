"""How many chains fit into the memory of a device: estimated before a run, not found out in it."""

import math
import os
import sys

import jax

from feelgood.core.errors import FeelgoodError
from feelgood.targets.history import on_accelerator

#: The share of the memory that chains may take: programs need room for their own work.
SHARE = 0.8
GIB = 2**30
#: Names the GiB that chains may take, where the device is shared or the estimate is wrong.
VARIABLE = "FEELGOOD_MEMORY"


def memory_limit() -> int | None:
    """Bytes that chains may take on the device; None where nobody can say."""
    given = os.environ.get(VARIABLE)
    if given:
        return _given(given)
    if on_accelerator():
        stats = jax.devices()[0].memory_stats() or {}
        most = stats.get("bytes_limit")
    else:
        names = ("SC_PHYS_PAGES", "SC_PAGE_SIZE")
        known = hasattr(os, "sysconf") and all(name in os.sysconf_names for name in names)
        most = os.sysconf(names[0]) * os.sysconf(names[1]) if known else None
    return int(SHARE * most) if most else None


def _given(text: str) -> int:
    """The limit that the user has set."""
    try:
        gib = float(text)
    except ValueError:
        gib = math.nan
    if not 0 < gib < math.inf:
        raise FeelgoodError(
            f"{VARIABLE} = {text!r} is not a number of GiB: use one such as 8, or leave it out."
        )
    return int(gib * GIB)


def chains_that_fit(chain_bytes: int, wanted: int, limit: int | None) -> int:
    """How many of `wanted` chains fit at once; an error where not even one does."""
    if chain_bytes <= 0 or limit is None:
        return wanted
    if chain_bytes > limit:
        raise FeelgoodError(
            f"one chain of this agent needs about {chain_bytes / GIB:.1f} GiB and the device has "
            f"{limit / GIB:.1f} GiB for it: use narrower layers, fewer updates, rounds, "
            "arms or features."
        )
    return min(wanted, limit // chain_bytes)


def say(sentence: str) -> None:
    """Tell the user something that is no error."""
    print(f"feelgood: {sentence}", file=sys.stderr, flush=True)
