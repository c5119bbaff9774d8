"""What a run returns: arrays, summaries, tables, a chart, a folder."""

import contextlib
import dataclasses
import html
import operator
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.numbers import figure
from feelgood.core.spec import Status
from feelgood.stats.summary import Summary

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from feelgood.api.comparing import Comparisons

#: Lines that a short form of results has at most.
MOST_LINES = 24


class NoSuchResult(FeelgoodError, KeyError):
    """No result has this name."""

    def __str__(self) -> str:  # a `KeyError` would put it in quotes
        return str(self.args[0])


class Shown:
    """What one result and several have in common: how they are shown, drawn and written."""

    def _run(self) -> "RunResult":
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._run()._html()

    def plot(
        self,
        *,
        log_x: bool = False,
        log_y: bool = False,
        band: Literal["quantile", "std"] | Any = "quantile",
    ) -> "alt.LayerChart | alt.ConcatChart | Any":
        """The chart of mean cumulative regret along the run, one panel per testbed.

        `band` is what is shaded: 10 to 90 % of the seeds, or `"std"`, mean ± standard deviation.
        """
        from feelgood.core.arguments import parse_choice
        from feelgood.report.charts.curves import regret_curves
        from feelgood.report.theme import theme_config

        checked: Any = parse_choice("band", band, ("quantile", "std"))
        options = {"log_x": bool(log_x), "log_y": bool(log_y), "band": checked}
        chart = regret_curves(self._run().results, **options)
        return chart.configure(**theme_config())

    def to_arrow(self) -> "pa.Table":
        """One row per agent, setting and seed, with the curve as a list column."""
        return _arrow(self._run().results)

    def to_pandas(self) -> "pd.DataFrame":
        """As `to_arrow`, for pandas."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> "pl.DataFrame":
        """As `to_arrow`, for polars."""
        try:
            import polars
        except ImportError:
            raise FeelgoodError("polars is not installed: run 'pip install polars'.") from None
        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def save(self, folder: str | Path | Any, *, force: bool = False) -> Path:
        """Write a results store, which `feelgood.load`, `feelgood plot` and `report` read.

        A folder that holds results already is refused; with `force` they are replaced.

        **Example:**

        >>> import feelgood, tempfile
        >>> result = feelgood.run("linear-20", "uniform", rounds=50, seeds=2)
        >>> folder = result.save(tempfile.mkdtemp() + "/mine")
        >>> feelgood.load(folder)["uniform"].final_regret.tolist() == list(result[0].final_regret)
        True
        """
        from feelgood.api.saving import save

        return save(self._run(), folder, force=force)


def to_pandas(table: "pa.Table") -> "pd.DataFrame":
    """An Arrow table as a data frame."""
    try:
        import pandas  # noqa: F401  (Arrow makes the frame)
    except ImportError:
        raise FeelgoodError("pandas is not installed: run 'pip install pandas'.") from None
    return table.to_pandas(use_threads=False)


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


@dataclasses.dataclass(frozen=True, repr=False)
class AgentResult(Shown):
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

    def _run(self) -> "RunResult":
        return RunResult((self,))

    def __repr__(self) -> str:
        return f"{self.agent} on {_title([self])}: mean regret {_regret(self)}"

    def compare(self, baseline: "AgentResult | Any") -> "Comparisons":
        """The paired table of this result against another one on the same testbed."""
        if not isinstance(baseline, AgentResult):
            raise FeelgoodError(
                f"{shown(baseline)} is no result to compare with: give another AgentResult."
            )
        return RunResult((baseline, self)).compare(0)

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


def _arrow(results: Sequence[AgentResult]) -> "pa.Table":
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
        for r in results
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


def _regret(result: AgentResult) -> str:
    """`mean ± std` over seeds, and a word on chains that diverged."""
    regret, bad = result.regret, int(np.sum(result.diverged_at >= 0))
    spread = f" ± {figure(regret.std, regret.mean)}" if regret.count > 1 else ""
    broken = f" ({bad} of {len(result.seeds)} chains diverged)" if bad else ""
    return f"{figure(regret.mean)}{spread}{broken}"


def _title(results: Sequence[AgentResult], problem: str | None = None) -> str:
    """What was run: testbed, rounds and seeds."""
    first = results[0]
    counts = sorted({len(r.seeds) for r in results})
    seeds = (
        "1 seed"
        if counts == [1]
        else f"{' to '.join(map(str, counts[:: len(counts) - 1 or 1]))} seeds"
    )
    return f"{problem or first.testbed}, {first.rounds:,} rounds, {seeds}"


@dataclasses.dataclass(frozen=True, repr=False)
class RunResult(Shown):
    """All agents of one run. Behaves as a sequence of `AgentResult`."""

    results: tuple[AgentResult, ...]
    interrupted: bool = False

    def _run(self) -> "RunResult":
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each result: the agent's, with the settings that tell it from others.

        Results on the same testbed have different labels. Where they are asked for, `alpha=1` is
        the same as `α=1`.
        """
        from feelgood.report.series import name_series

        return tuple(series.label for series in name_series(self.results))

    def _blocks(self) -> Iterator[tuple[str, list[tuple[str, AgentResult]]]]:
        """A title and the labelled results, testbed by testbed."""
        from feelgood.report.series import name_series

        series = name_series(self.results)
        for problem in dict.fromkeys(s.problem for s in series):
            members = [(s.label, s.result) for s in series if s.problem == problem]
            yield _title([r for _, r in members], problem), members

    def __repr__(self) -> str:
        if not self.results:
            return "no results"
        lines = []
        for title, members in self._blocks():
            lines.append(f"{title}: mean regret ± std")
            width = max(len(label) for label, _ in members)
            lines += [f"  {label:<{width}}  {_regret(r)}" for label, r in members]
        if len(lines) > MOST_LINES:
            more = len(lines) - MOST_LINES + 1
            lines = [*lines[: MOST_LINES - 1], f"  … and {more:,} lines more"]
        if self.interrupted:
            lines.append("interrupted before the end")
        return "\n".join(lines)

    def _html(self) -> str:
        """A small table for notebooks."""
        rows = []
        for title, members in self._blocks():
            rows.append(f"<tr><th colspan=4 style='text-align:left'>{html.escape(title)}</th></tr>")
            rows.append(
                "<tr><th style='text-align:left'>agent</th><th>regret (mean ± std)</th>"
                "<th>median</th><th>best arm</th></tr>"
            )
            for label, r in members:
                best = Summary.of(r.best_arm_rate).mean
                cells = (
                    _regret(r),
                    figure(r.regret.median),
                    f"{100 * best:.1f} %" if np.isfinite(best) else "–",
                )
                rows.append(
                    f"<tr><td style='text-align:left'>{html.escape(label)}</td>"
                    + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
                    + "</tr>"
                )
        if self.interrupted:
            rows.append("<tr><td colspan=4>interrupted before the end</td></tr>")
        return f"<table>{''.join(rows) or '<tr><td>no results</td></tr>'}</table>"

    def compare(self, baseline: "str | int | AgentResult | Any | None" = None) -> "Comparisons":
        """Every result against one of them, over the seeds that both have.

        **Arguments:**

        - `baseline`: a label (see `labels`), an agent's name, a place or a result; by default the
          one with the lowest mean regret on each testbed.

        **Example:**

        >>> import feelgood
        >>> result = feelgood.run("linear-20", ["uniform", "linucb"], rounds=200, seeds=4)
        >>> [row.verdict for row in result.compare("uniform")]
        ['lower regret']
        """
        from feelgood.api.comparing import compare_all

        return compare_all(self, baseline)

    @classmethod
    def load(cls, folder: str | Path | Any) -> "RunResult":
        """The results that `save`, `feelgood run --out` or a study wrote to a folder."""
        from feelgood.api.saving import load

        return load(folder)

    def __iter__(self) -> Iterator[AgentResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, which: Any) -> AgentResult:
        """By position, by agent name (the first with that name) or by label."""
        with contextlib.suppress(TypeError):
            return self.results[operator.index(which)]
        from feelgood.report.series import in_symbols

        labels = self.labels
        if isinstance(which, str):
            for result in self.results:
                if result.agent == which:
                    return result
            if (label := in_symbols(which)) in labels:
                return self.results[labels.index(label)]
        known = dict.fromkeys([*(r.agent for r in self.results), *labels])
        hint = did_you_mean(which, known) if isinstance(which, str) else "use an agent's name."
        raise NoSuchResult(f"there is no result {shown(which)}: {hint}")

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
