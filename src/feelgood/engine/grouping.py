"""Which chains share a program call: by cores, by memory, and by what suits the agent."""

import math
import os
from collections.abc import Callable
from typing import NamedTuple

from feelgood.core.protocols import Policy
from feelgood.core.spec import Spec
from feelgood.engine.memory import GIB, chains_that_fit


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Group(NamedTuple):
    """Chains that share one program call: some settings × some seeds, perhaps padded."""

    settings: tuple[int, ...]
    seeds: tuple[int, ...]


def _cut(count: int, size: int) -> list[tuple[int, ...]]:
    """Indices 0 … count − 1 in parts of exactly `size`; the last repeats its last index."""
    parts = [list(range(i, min(i + size, count))) for i in range(0, count, size)]
    return [tuple(part + [part[-1]] * (size - len(part))) for part in parts]


def _groups(
    policy: Policy, spec: Spec, settings: int, seeds: int, workers: int, fit: int
) -> list[Group]:
    """Split the chains so that every worker has some and all programs have one shape.

    No more than `fit` chains are played at once by all workers together, and no more than the
    policy wants in one program.
    """
    if seeds >= workers:
        g_size, n_size = settings, math.ceil(seeds / workers)
    else:
        g_size, n_size = math.ceil(settings / workers), seeds
    most = max(1, min(fit // workers, policy.chains_per_program(spec) or fit))
    g_size = min(g_size, most)
    n_size = max(1, min(n_size, most // g_size))
    return [Group(g, n) for g in _cut(settings, g_size) for n in _cut(seeds, n_size)]


def on_cores(
    policy: Policy,
    spec: Spec,
    chain_bytes: int,
    limit: int | None,
    settings: int,
    seeds: int,
    workers: int,
    notify: Callable[[str], None],
) -> tuple[list[Group], int]:
    """The chains in groups for this many workers, and how many of these memory allows."""
    chains = settings * seeds
    fit = chains_that_fit(chain_bytes, workers * chains, limit)
    wanted = min(chains, workers * (policy.chains_per_program(spec) or chains))
    if fit < wanted:
        notify(
            f"{chains} chains need about {chains * chain_bytes / GIB:.1f} GiB, more than this "
            f"machine has: no more than {fit} run at once."
        )
    return _groups(policy, spec, settings, seeds, workers, fit), min(workers, fit)


def that_fit(
    chain_bytes: int,
    limit: int | None,
    settings: int,
    seeds: int,
    notify: Callable[[str], None],
) -> list[Group]:
    """All chains as one group, or as several of one size where memory is short."""
    fit = chains_that_fit(chain_bytes, settings * seeds, limit)
    g_size = min(settings, fit)
    n_size = max(1, min(seeds, fit // settings))
    groups = [Group(g, n) for g in _cut(settings, g_size) for n in _cut(seeds, n_size)]
    if len(groups) > 1:
        notify(
            f"{settings * seeds} chains need about {settings * seeds * chain_bytes / GIB:.1f} GiB, "
            f"more than the device has: running them in {len(groups)} parts of "
            f"{g_size * n_size}, one after the other."
        )
    return groups
