"""What a run is judged by: one accumulator on host arrays, in float64."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

#: Rounds at the end of a run over which the paper sums the simple regret.
SIMPLE_REGRET_WINDOW = 500


def curve_grid(rounds: int, points: int = 200) -> Int[np.ndarray, " points"]:
    """Rounds at which curves are recorded: dense early, at most `points`, ending at `rounds`."""
    half = points // 2
    early = np.geomspace(1, rounds, half)
    even = np.linspace(rounds / half, rounds, half)
    nearest = np.rint(np.concatenate([early, even])).astype(np.int64)
    return np.unique(np.clip(nearest, 1, rounds))


def _running_sums(
    before: Float[np.ndarray, " chains"], values: Float[np.ndarray, "block chains"]
) -> Float[np.ndarray, "block chains"]:
    """`before` plus the first rows, one by one: the same bits however rows are cut in blocks."""
    rows = np.concatenate([before[None], values.astype(np.float64)])
    return np.add.accumulate(rows, axis=0)[1:]


@dataclasses.dataclass
class Tally:
    """Running sums of one group of chains, fed a block of consecutive rounds at a time.

    Sums are float64 on the host: the final values are exact to rounding however long the run.
    `save` and `load` carry them over an interruption.
    """

    rounds: int
    chains: int
    arms: int
    health_names: tuple[str, ...]
    points: int = 200

    def __post_init__(self) -> None:
        self.grid = curve_grid(self.rounds, self.points)
        size = (self.chains, len(self.grid))
        self.curve = np.full(size, np.nan)
        self.health = {name: np.zeros(size) for name in self.health_names}
        self.total = np.zeros(self.chains)
        self.late = np.zeros(self.chains)
        self.best = np.zeros(self.chains, np.int64)
        self.counts = np.zeros((self.chains, self.arms), np.int64)
        self.done = 0

    def add(
        self,
        regret: Float[np.ndarray, "block chains"],
        arms: Int[np.ndarray, "block chains"],
        health: dict[str, Float[np.ndarray, "block chains"]],
    ) -> None:
        """Take in the next rounds."""
        block = regret.shape[0]
        running = _running_sums(self.total, regret)
        first, last = self.done + 1, self.done + block
        inside = np.flatnonzero((self.grid >= first) & (self.grid <= last))
        self.curve[:, inside] = running[self.grid[inside] - first].T
        if health:
            # Round r belongs to the first grid point at or after it.
            slot = np.searchsorted(self.grid, np.arange(first, last + 1))
            cuts = [*np.flatnonzero(np.diff(slot, prepend=-1)), block]
            for start, stop in itertools.pairwise(cuts):
                for name, values in health.items():
                    sums = self.health[name][:, slot[start]]
                    sums[:] = _running_sums(sums, values[start:stop])[-1]
        window = max(0, self.rounds - SIMPLE_REGRET_WINDOW)
        late = regret[max(0, window - self.done) :]
        if len(late):
            self.late = _running_sums(self.late, late)[-1]
        self.best += (regret <= 0.0).sum(axis=0)
        place = np.arange(self.chains) * self.arms + arms
        counted = np.bincount(place.reshape(-1), minlength=self.counts.size)
        self.counts += counted.reshape(self.counts.shape)
        self.total = running[-1]
        self.done = last

    def save(self) -> dict[str, np.ndarray]:
        """Everything summed so far, as named arrays."""
        sums = {name: getattr(self, name) for name in ("curve", "total", "late", "best", "counts")}
        health = {f"health.{name}": values for name, values in self.health.items()}
        return {**sums, **health, "done": np.asarray(self.done)}

    def load(self, saved: Mapping[str, np.ndarray]) -> None:
        """Go on from what `save` returned."""
        for name in ("curve", "total", "late", "best", "counts"):
            setattr(self, name, np.array(saved[name]))
        self.health = {name: np.array(saved[f"health.{name}"]) for name in self.health_names}
        self.done = int(saved["done"])

    def numbers(self) -> dict[str, Any]:
        """What was measured, under the names of `schema.QUANTITIES`: one entry per chain each."""
        return {
            "final_regret": self.total,
            "simple_regret": self.late,
            "best_arm_rate": self.best / self.rounds,
            "arm_counts": self.counts,
            "curve": self.curve,
            "health": self.health_means(),
        }

    def health_means(self) -> dict[str, Float[np.ndarray, "chains points"]]:
        """Mean of each diagnostic between consecutive grid points."""
        width = np.diff(self.grid, prepend=0)
        return {name: sums / width for name, sums in self.health.items()}
