"""Progress that was saved by a run like this one, and no other."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from feelgood.simulate import Checkpoints

#: Under this name it is saved whose progress a checkpoint is.
WHOSE = "chains"


class OfTheseChains:
    """Checkpoints that remember of which chains they are, and on what kind of device they ran.

    How chains are grouped depends on the device and on its memory, and so do the last bits of
    their results. A group that was saved under another grouping, or elsewhere, counts as absent:
    it is played again, whole.
    """

    def __init__(self, inner: "Checkpoints", groups: Sequence[Any]) -> None:
        self._inner = inner
        self._groups = groups

    def _whose(self, group: int) -> np.ndarray:
        chains = [list(map(int, part)) for part in self._groups[group]]
        return np.asarray(json.dumps([jax.default_backend(), *chains]))

    def load(self, group: int) -> Mapping[str, np.ndarray] | None:
        """What was saved last for this group, if it was this group's."""
        saved = self._inner.load(group)
        ours = saved is not None and np.array_equal(saved.get(WHOSE, ""), self._whose(group))
        return saved if ours else None

    def due(self, group: int) -> bool:
        """Whether it is time to save this group."""
        return self._inner.due(group)

    def save(self, group: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep this group's progress, and whose it is."""
        self._inner.save(group, {**arrays, WHOSE: self._whose(group)})
