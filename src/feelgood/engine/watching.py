"""Measures that are taken along a run."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from feelgood.core.policy import Policy
from feelgood.engine.loop import Playing
from feelgood.numerics.keys import AnyKey
from feelgood.targets.sums import Stats


@runtime_checkable
class Watch(Protocol):
    """Measures that are taken along a run. They must leave the run as it is."""

    @property
    def every(self) -> int:
        """Rounds between two measurements; the last round of the run is measured too."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values that `measure` returns."""

    def measure(
        self, policy: Policy, keys: AnyKey, state: Any, seen: Stats, t: int
    ) -> tuple[Float[np.ndarray, "names chains"], float]:
        """All values of every chain after round `t`, and the seconds that compiling took.

        `seen` are the sums of what every chain has observed.
        """


class Measurements:
    """What is measured along the run of one group of chains."""

    def __init__(self, watch: Watch | None, rounds: int, chains: int) -> None:
        self._watch = watch
        self.names = () if watch is None else watch.names
        moments = [] if watch is None else [*range(watch.every, rounds, watch.every), rounds]
        self.rounds = np.array(moments, np.int64)
        self.values = np.full((len(self.names), chains, len(moments)), np.nan)

    def next_after(self, done: int, stop: int) -> int:
        """The round of the next measurement, or `stop` if that comes first."""
        later = self.rounds[self.rounds > done]
        return min(stop, int(later[0])) if len(later) else stop

    def take(self, policy: Policy, keys: AnyKey, playing: Playing, done: int) -> float:
        """Measure, if this round is to be measured; returns the seconds that compiling took."""
        (now,) = np.nonzero(self.rounds == done)
        if self._watch is None or playing.seen is None or not len(now):
            return 0.0
        state, seen = playing.state, playing.seen
        values, seconds = self._watch.measure(policy, keys, state, seen, done)
        self.values[:, :, now[0]] = values
        return seconds

    def save(self) -> dict[str, np.ndarray]:
        """What was measured so far, as a named array."""
        return {} if self._watch is None else {"along": self.values}

    def load(self, saved: Mapping[str, np.ndarray]) -> None:
        """Go on from what `save` returned."""
        if self._watch is not None:
            self.values = np.array(saved["along"])
