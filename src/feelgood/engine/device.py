"""The machine that programs run on. Only the engine asks; everything below it is told."""

import importlib.util
import math
import os

import jax

from feelgood.core.errors import FeelgoodError

#: The share of the memory that chains may take: programs need room for their own work.
SHARE = 0.8
GIB = 2**30
#: Names the GiB that chains may take, where the device is shared or the estimate is wrong.
VARIABLE = "FEELGOOD_MEMORY"


def on_accelerator() -> bool:
    """Whether programs run on something else than the CPU."""
    return jax.default_backend() != "cpu"


def on_nvidia() -> bool:
    """Whether programs run on a GPU of NVIDIA's."""
    return jax.default_backend() == "gpu" and "cuda" in jax.devices()[0].client.platform_version


def has_programs() -> bool:
    """Whether chains or passes can be programs; see `feelgood.numerics.chain_programs`."""
    return on_nvidia() and importlib.util.find_spec("jax.experimental.pallas.triton") is not None


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
