"""What a run measured: arrays with one entry per seed, and the texts that sum them up."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.lookup import Lookup
from feelgood.core.numbers import figure
from feelgood.core.spec import Status
from feelgood.engine import schema
from feelgood.engine.schema import Axes, Quantity
from feelgood.stats.summary import Summary

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

#: Makes a `RunResult` of results. It draws, compares and saves them, and lives in an upper room.
RUNS: Lookup[Callable[[tuple["AgentResult", ...]], Any]] = Lookup(
    "kind of run", "feelgood.api.run_result"
)


@dataclasses.dataclass(frozen=True)
class PosteriorAlong:
    """How far an agent's draws were from the exact posterior, at some rounds of its runs.

    By measure (`feelgood.posterior.MEASURES`): its value, what exact draws would show, and the
    Monte Carlo standard error. NaN where a chain had diverged or was not measured.
    """

    rounds: Int[np.ndarray, " points"]
    value: Mapping[str, Float[np.ndarray, "seeds points"]]
    expected: Mapping[str, Float[np.ndarray, "seeds points"]]
    error: Mapping[str, Float[np.ndarray, "seeds points"]]

    def seeds(self, chosen: "slice | np.ndarray") -> "PosteriorAlong":
        """The same for some of the seeds."""
        parts = {
            part: {name: v[chosen] for name, v in getattr(self, part).items()}
            for part in ("value", "expected", "error")
        }
        return PosteriorAlong(rounds=self.rounds, **parts)

    def of_seed(self, i: int) -> list[dict[str, Any]]:
        """One record per measure, in plain types; NaN becomes null."""
        return [
            {
                "measure": name,
                "values": _plain(values[i]),
                "expected": _plain(self.expected[name][i]),
                **({"errors": _plain(self.error[name][i])} if name in self.error else {}),
            }
            for name, values in self.value.items()
        ]


@dataclasses.dataclass(frozen=True, repr=False)
class AgentResult:
    """One agent with one setting on one testbed, over all seeds. Leading axis: seeds.

    **Example:**

    >>> import feelgood, tempfile
    >>> linucb, uniform = feelgood.run("linear-20", ["linucb", "uniform"], rounds=100, seeds=3)
    >>> uniform.final_regret.shape, uniform.regret.count, uniform.simple.count, uniform.status
    ((3,), 3, 3, 'ok')
    >>> [row.verdict for row in linucb.compare(uniform)], len(linucb.at_places(slice(2)).seeds)
    (['lower regret'], 2)
    >>> len(linucb.curve_mean()) == len(linucb.curve_std()) == len(linucb.curve_rounds)
    True
    >>> len(linucb.to_arrow()), len(linucb.to_pandas()), len(linucb.to_polars())
    (3, 3, 3)
    >>> linucb.to_json()["agent"], linucb.save(tempfile.mkdtemp() + "/mine").name
    ('linucb', 'mine')
    >>> chart = linucb.plot()
    >>> {status.name for status in linucb.statuses}
    {'OK'}
    >>> from feelgood.engine.schema import QUANTITIES
    >>> linucb.values_of(next(q for q in QUANTITIES if q.name == "best_arm_rate")).shape
    (3,)
    """

    agent: str
    testbed: str
    settings: Mapping[str, Any]
    testbed_settings: Mapping[str, Any]
    rounds: int
    seeds: tuple[int, ...]
    final_regret: Float[np.ndarray, " seeds"]
    simple_regret: Float[np.ndarray, " seeds"]
    best_arm_rate: Float[np.ndarray, " seeds"]
    arm_counts: Int[np.ndarray, "seeds arms"]
    curve_rounds: Int[np.ndarray, " points"]
    curve: Float[np.ndarray, "seeds points"]
    health: Mapping[str, Float[np.ndarray, "seeds points"]]
    #: Effective sample size of 200 repeated draws at the end (NaN for agents that draw none).
    ess: Float[np.ndarray, " seeds"]
    diverged_at: Int[np.ndarray, " seeds"]
    compile_s: float
    run_s: float
    #: Measures of the draws along the run, where they were asked for (`posterior_every`).
    posterior: PosteriorAlong | None = None
    #: Where, when and with what it was run; empty for results that come from no store.
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Numbers of `schema.QUANTITIES` that have no field of their own, by name.
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.agent} on {run_in_words([self])}: mean regret {regret_in_words(self)}"

    def values_of(self, quantity: Quantity) -> Any:
        """The values of a quantity: an array, or a dictionary of arrays."""
        if has_field(quantity):
            return getattr(self, quantity.name)
        if quantity.name in self.extra:
            return self.extra[quantity.name]
        return absent(quantity, len(self.seeds), len(self.curve_rounds))

    def at_places(self, places: "slice | np.ndarray") -> "AgentResult":
        """The same for the seeds at these places; compile and run seconds stay as they are."""
        numbers = {
            n.name: _map_arrays(lambda values: values[places], self.values_of(n))
            for n in schema.QUANTITIES
        }
        return dataclasses.replace(
            self,
            seeds=tuple(np.array(self.seeds, object)[places]),
            posterior=self.posterior and self.posterior.seeds(places),
            **in_fields(numbers),
        )

    @property
    def statuses(self) -> tuple[Status, ...]:
        """What became of each seed's chain."""
        return tuple(Status.DIVERGED if t >= 0 else Status.OK for t in self.diverged_at)

    @property
    def status(self) -> str:
        """One sentence about all chains."""
        bad = [int(t) for t in self.diverged_at if t >= 0]
        if not bad:
            return "ok"
        return (
            f"{len(bad)} of {len(self.seeds)} chains diverged, the first in round {min(bad)}: "
            f"{Status.DIVERGED.message}"
        )

    @property
    def regret(self) -> Summary:
        """Final cumulative regret over seeds."""
        return Summary.of(self.final_regret)

    @property
    def simple(self) -> Summary:
        """Regret of the last 500 rounds over seeds."""
        return Summary.of(self.simple_regret)

    def curve_mean(self) -> Float[np.ndarray, " points"]:
        """Mean cumulative regret along the run, over the chains still alive."""
        return _over_seeds(np.mean, self.curve)

    def curve_std(self) -> Float[np.ndarray, " points"]:
        """Standard deviation of the cumulative regret along the run."""
        return _over_seeds(_std, self.curve)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, lists and strings; NaN becomes null."""
        numbers = {n.name: self._number_json(n) for n in schema.QUANTITIES}
        # These come last, in the order that the files of earlier versions have.
        late = {name: numbers.pop(name) for name in ("curve", "health", "ess", "diverged_at")}
        diverged_at = late.pop("diverged_at")
        return {
            "agent": self.agent,
            "testbed": self.testbed,
            "settings": dict(self.settings),
            "testbed_settings": dict(self.testbed_settings),
            "rounds": self.rounds,
            "seeds": list(self.seeds),
            **numbers,
            **late,
            **self._posterior_json(),
            "status": self.status,
            "diverged_at": diverged_at,
            "compile_s": round(self.compile_s, 6),
            "run_s": round(self.run_s, 6),
        }

    def _number_json(self, quantity: Quantity) -> Any:
        """One value per seed; of what goes along the run, the mean over seeds."""
        values, grid = self.values_of(quantity), self.curve_rounds.tolist()
        if quantity.axes is Axes.POINT:
            mean, std = _over_seeds(np.mean, values), _over_seeds(_std, values)
            return {"rounds": grid, "mean": _plain(mean), "std": _plain(std)}
        if quantity.axes is Axes.DIAGNOSTIC:
            means = {name: _over_seeds(np.mean, own) for name, own in values.items()}
            return {name: {"rounds": grid, "mean": _plain(m)} for name, m in means.items()}
        if quantity.whole:
            return [None if v == quantity.none else v for v in values.tolist()]
        return [_plain(own) for own in values] if values.ndim > 1 else _plain(values)

    def _posterior_json(self) -> dict[str, Any]:
        if self.posterior is None:
            return {}
        measures = [self.posterior.of_seed(i) for i in range(len(self.seeds))]
        return {"posterior": {"rounds": self.posterior.rounds.tolist(), "seeds": measures}}

    # What a run of several results can do, for this one alone.

    def _alone(self) -> Any:
        return RUNS["run"]((self,))

    def _repr_html_(self) -> str:
        text: str = self._alone()._repr_html_()
        return text

    def plot(self, *, log_x: bool = False, log_y: bool = False, band: Any = "quantile") -> Any:
        """The chart of mean cumulative regret along the run; see `RunResult.plot`."""
        return self._alone().plot(log_x=log_x, log_y=log_y, band=band)

    def compare(self, baseline: "AgentResult | Any") -> Any:
        """The paired table of this result against another one on the same testbed."""
        if not isinstance(baseline, AgentResult):
            raise FeelgoodError(
                f"{shown(baseline)} is no result to compare with: give another AgentResult."
            )
        return RUNS["run"]((baseline, self)).compare(0)

    def to_arrow(self) -> "pa.Table":
        """One row per seed, with the curve as a list column."""
        return self._alone().to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        """As `to_arrow`, for pandas."""
        return self._alone().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """As `to_arrow`, for polars."""
        frame: pl.DataFrame = self._alone().to_polars()
        return frame

    def save(self, folder: str | Path | Any, *, force: bool = False) -> Path:
        """Write a results store; see `RunResult.save`."""
        place: Path = self._alone().save(folder, force=force)
        return place


def has_field(quantity: Quantity) -> bool:
    """Whether `AgentResult` has a field for it; other numbers are in `extra`."""
    return quantity.name in AgentResult.__dataclass_fields__


def in_fields(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers by name as arguments of `AgentResult`."""
    known = AgentResult.__dataclass_fields__
    fields = {name: values for name, values in numbers.items() if name in known}
    return {**fields, "extra": {k: v for k, v in numbers.items() if k not in known}}


def absent(quantity: Quantity, seeds: int, points: int) -> Any:
    """What stands for a number that was not recorded."""
    if quantity.axes is Axes.DIAGNOSTIC:
        return {}
    shape = {Axes.SEED: (seeds,), Axes.ARM: (seeds, 0), Axes.POINT: (seeds, points)}[quantity.axes]
    fill = np.nan if not quantity.whole else 0 if quantity.none is None else quantity.none
    return np.full(shape, fill, np.int64 if quantity.whole else np.float64)


def _map_arrays(function: Callable[[np.ndarray], np.ndarray], values: Any) -> Any:
    """The function of an array, or of each in a dictionary."""
    if isinstance(values, Mapping):
        return {name: function(own) for name, own in values.items()}
    return function(values)


def _over_seeds(reduce: Any, values: Float[np.ndarray, "seeds points"]) -> Any:
    """Reduce each column over its finite entries; NaN where there are none."""
    columns = (column[np.isfinite(column)] for column in values.T)
    return np.array([reduce(c) if len(c) else np.nan for c in columns])


def _plain(values: Any) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in np.asarray(values)]


def _std(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def run_key(run: Any) -> str:
    """What a run is, apart from its seeds: of an `AgentResult`, or of a study's cell."""
    return key_of(run.testbed, run.testbed_settings, run.agent, run.settings, run.rounds)


def key_of(
    testbed: str,
    testbed_settings: Mapping[str, Any],
    agent: str,
    settings: Mapping[str, Any],
    rounds: int,
) -> str:
    """The same from its parts."""
    parts = [testbed, dict(testbed_settings), agent, dict(settings), rounds]
    return json.dumps(parts, sort_keys=True)


def regret_in_words(result: AgentResult) -> str:
    """`mean ± std` over seeds, and a word on chains that diverged."""
    regret, bad = result.regret, int(np.sum(result.diverged_at >= 0))
    spread = f" ± {figure(regret.std, regret.mean)}" if regret.count > 1 else ""
    broken = f" ({bad} of {len(result.seeds)} chains diverged)" if bad else ""
    return f"{figure(regret.mean)}{spread}{broken}"


def run_in_words(results: Sequence[AgentResult], problem: str | None = None) -> str:
    """What was run: testbed, rounds and seeds."""
    first = results[0]
    counts = sorted({len(r.seeds) for r in results})
    seeds = (
        "1 seed"
        if counts == [1]
        else f"{' to '.join(map(str, counts[:: len(counts) - 1 or 1]))} seeds"
    )
    return f"{problem or first.testbed}, {first.rounds:,} rounds, {seeds}"
