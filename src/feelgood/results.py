"""What a run returns: arrays, summaries, a table, Arrow."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from feelgood.metrics import Summary
from feelgood.types import Status

if TYPE_CHECKING:
    import pyarrow as pa


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

    def seeds(self, chosen: slice) -> "PosteriorAlong":
        """Of some of the seeds."""
        parts = {
            part: {name: v[chosen] for name, v in getattr(self, part).items()}
            for part in ("value", "expected", "error")
        }
        return PosteriorAlong(rounds=self.rounds, **parts)

    def of_seed(self, i: int) -> list[dict[str, Any]]:
        """One record a measure, in plain types; NaN becomes null."""
        return [
            {
                "measure": name,
                "values": _plain(values[i]),
                "expected": _plain(self.expected[name][i]),
                "errors": _plain(self.error[name][i]),
            }
            for name, values in self.value.items()
        ]


@dataclasses.dataclass(frozen=True)
class AgentResult:
    """One agent with one setting on one testbed, over all seeds. Leading axis: seeds."""

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
        return _over_seeds(lambda x: np.std(x, ddof=1) if len(x) > 1 else np.nan, self.curve)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, lists and strings; NaN becomes null."""
        return {
            "agent": self.agent,
            "testbed": self.testbed,
            "settings": dict(self.settings),
            "testbed_settings": dict(self.testbed_settings),
            "rounds": self.rounds,
            "seeds": list(self.seeds),
            "final_regret": _plain(self.final_regret),
            "simple_regret": _plain(self.simple_regret),
            "best_arm_rate": _plain(self.best_arm_rate),
            "arm_counts": self.arm_counts.tolist(),
            "curve": {
                "rounds": self.curve_rounds.tolist(),
                "mean": _plain(self.curve_mean()),
                "std": _plain(self.curve_std()),
            },
            "health": {
                name: {
                    "rounds": self.curve_rounds.tolist(),
                    "mean": _plain(_over_seeds(np.mean, values)),
                }
                for name, values in self.health.items()
            },
            "ess": _plain(self.ess),
            **self._posterior_json(),
            "status": self.status,
            "diverged_at": [int(t) if t >= 0 else None for t in self.diverged_at],
            "compile_s": round(self.compile_s, 6),
            "run_s": round(self.run_s, 6),
        }

    def _posterior_json(self) -> dict[str, Any]:
        if self.posterior is None:
            return {}
        measures = [self.posterior.of_seed(i) for i in range(len(self.seeds))]
        return {"posterior": {"rounds": self.posterior.rounds.tolist(), "seeds": measures}}


def _over_seeds(reduce: Any, values: Float[np.ndarray, "seeds points"]) -> Any:
    """Reduce each column over its finite entries; NaN where there are none."""
    columns = (column[np.isfinite(column)] for column in values.T)
    return np.array([reduce(c) if len(c) else np.nan for c in columns])


def _plain(values: Any) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in np.asarray(values)]


def posterior_columns() -> list[tuple[str, Any]]:
    """The Arrow columns of `PosteriorAlong`, null where nothing was measured."""
    import pyarrow as pa

    numbers = pa.list_(pa.float64())
    measure = [("values", numbers), ("expected", numbers), ("errors", numbers)]
    return [
        ("posterior_rounds", pa.list_(pa.int64())),
        ("posterior", pa.list_(pa.struct([("measure", pa.string()), *measure]))),
    ]


@dataclasses.dataclass(frozen=True)
class RunResult:
    """All agents of one run. Behaves as a sequence of `AgentResult`."""

    results: tuple[AgentResult, ...]
    interrupted: bool = False

    def __iter__(self) -> Iterator[AgentResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, which: int | str) -> AgentResult:
        """By position, or by agent name (the first with that name)."""
        if isinstance(which, int):
            return self.results[which]
        for result in self.results:
            if result.agent == which:
                return result
        raise KeyError(which)

    def to_json(self) -> dict[str, Any]:
        """`{"results": [...]}`, one object per agent and setting."""
        out: dict[str, Any] = {"results": [r.to_json() for r in self.results]}
        if self.interrupted:
            out["interrupted"] = True
        return out

    def summary(self) -> list[dict[str, Any]]:
        """One row per agent and setting: how the final and the simple regret are spread."""
        return [
            {
                "agent": r.agent,
                "testbed": r.testbed,
                "settings": dict(r.settings),
                "rounds": r.rounds,
                "seeds": len(r.seeds),
                **{f"regret_{k}": v for k, v in dataclasses.asdict(r.regret).items()},
                **{f"simple_{k}": v for k, v in dataclasses.asdict(r.simple).items()},
                "best_arm_rate": Summary.of(r.best_arm_rate).mean,
                "status": r.status,
                "compile_s": r.compile_s,
                "run_s": r.run_s,
            }
            for r in self.results
        ]

    def to_arrow(self) -> "pa.Table":
        """One row per agent, setting and seed, with the curve as a list column."""
        import json

        import pyarrow as pa

        rows = [
            {
                "agent": r.agent,
                "testbed": r.testbed,
                "settings": json.dumps(dict(r.settings), sort_keys=True),
                "rounds": r.rounds,
                "seed": seed,
                "final_regret": float(r.final_regret[i]),
                "simple_regret": float(r.simple_regret[i]),
                "best_arm_rate": float(r.best_arm_rate[i]),
                "arm_counts": r.arm_counts[i].tolist(),
                "status": r.statuses[i].name.lower(),
                "diverged_at": int(r.diverged_at[i]) if r.diverged_at[i] >= 0 else None,
                "curve_rounds": r.curve_rounds.tolist(),
                "curve_regret": r.curve[i].tolist(),
                "posterior_rounds": None if r.posterior is None else r.posterior.rounds.tolist(),
                "posterior": None if r.posterior is None else r.posterior.of_seed(i),
            }
            for r in self.results
            for i, seed in enumerate(r.seeds)
        ]
        schema = pa.schema(
            [
                ("agent", pa.string()),
                ("testbed", pa.string()),
                ("settings", pa.string()),
                ("rounds", pa.int64()),
                ("seed", pa.int64()),
                ("final_regret", pa.float64()),
                ("simple_regret", pa.float64()),
                ("best_arm_rate", pa.float64()),
                ("arm_counts", pa.list_(pa.int64())),
                ("status", pa.string()),
                ("diverged_at", pa.int64()),
                ("curve_rounds", pa.list_(pa.int64())),
                ("curve_regret", pa.list_(pa.float64())),
                *posterior_columns(),
            ]
        )
        return pa.Table.from_pylist(rows, schema=schema)
