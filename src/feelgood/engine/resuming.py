"""Progress that groups of chains leave behind, and that only a run like theirs goes on from."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

#: A checkpoint says under these names of which chains it is, and what arrays it has.
WHOSE, LAYOUT = "chains", "layout"


@runtime_checkable
class Checkpoints(Protocol):
    """Where groups of chains leave their progress, so that a later run can go on from it.

    Group i of a run is always the same chains, in the same order. What is loaded must be what was
    saved, bit for bit; then so is the result.
    """

    def load(self, group: int) -> Mapping[str, np.ndarray] | None:
        """What was saved last for this group; None: nothing."""

    def due(self, group: int) -> bool:
        """Whether it is time to save this group."""

    def save(self, group: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep this group's progress instead of what was saved before."""


class _Marked(ABC):
    """Checkpoints that are saved with a mark; one with another mark counts as absent."""

    name: str

    def __init__(self, inner: Checkpoints) -> None:
        self._inner = inner

    @abstractmethod
    def mark(self, group: int) -> str:
        """What is saved with this group."""

    def load(self, group: int) -> Mapping[str, np.ndarray] | None:
        """What was saved last for this group, if it was this group's."""
        saved = self._inner.load(group)
        ours = saved is not None and np.array_equal(saved.get(self.name, ""), self.mark(group))
        return saved if ours else None

    def due(self, group: int) -> bool:
        """Whether it is time to save this group."""
        return self._inner.due(group)

    def save(self, group: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep this group's progress, and its mark."""
        self._inner.save(group, {**arrays, self.name: np.asarray(self.mark(group))})


class CheckpointsOfChains(_Marked):
    """Checkpoints that remember of which chains they are, and with what they were run.

    How chains are grouped depends on the device and on its memory, and so do the last bits of
    their results. A group that was saved under another grouping, or elsewhere, or by another
    version, is played again, whole.
    """

    name = WHOSE

    def __init__(self, inner: Checkpoints, groups: Sequence[Any]) -> None:
        super().__init__(inner)
        self._groups = groups
        self._made = [version(package) for package in ("feelgood", "jax", "jaxlib")]

    def mark(self, group: int) -> str:
        chains = [list(map(int, part)) for part in self._groups[group]]
        return json.dumps([jax.default_backend(), self._made, *chains])


class CheckpointsOfLayout(_Marked):
    """Checkpoints whose arrays are those that this run would save: `like` is such a set of them.

    An agent whose state has changed since, in the same version, starts its runs again.
    """

    name = LAYOUT

    def __init__(self, inner: Checkpoints, *like: Any) -> None:
        super().__init__(inner)
        leaves, _ = jax.tree_util.tree_flatten_with_path(like)
        # Sizes may grow along a run; names, types and numbers of axes stay.
        parts = (f"{jax.tree_util.keystr(path)} {x.dtype} {x.ndim}" for path, x in leaves)
        self._layout = "\n".join(parts)

    def mark(self, group: int) -> str:
        return self._layout
