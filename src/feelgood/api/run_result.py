"""All results of a run together: shown, drawn, compared, saved and read."""

import contextlib
import dataclasses
import html
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feelgood.api.data_frames import to_pandas, to_polars
from feelgood.api.paired_table import Comparisons, compare_all
from feelgood.api.saving import load_results, save_results
from feelgood.core.arguments import parse_choice
from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.numbers import figure
from feelgood.engine import schema
from feelgood.engine.columns import to_arrow, to_tree
from feelgood.engine.results import RUNS, AgentResult, regret_in_words, run_in_words
from feelgood.engine.schema import Axes
from feelgood.report.series import in_symbols, name_series
from feelgood.stats.summary import Summary

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

#: Lines that a short form of results has at most.
MOST_LINES = 24


class NoSuchResult(FeelgoodError, KeyError):
    """No result has this name."""

    def __str__(self) -> str:  # a `KeyError` would put it in quotes
        return str(self.args[0])


@dataclasses.dataclass(frozen=True, repr=False)
class RunResult:
    """All agents of one run. Behaves as a sequence of `AgentResult`.

    **Example:**

    >>> import feelgood, tempfile
    >>> result = feelgood.run("linear-20", ["lints", "uniform"], rounds=100, seeds=2)
    >>> result.labels, len(result), result["lints"].rounds
    (('lints', 'uniform'), 2, 100)
    >>> result.to_arrow().num_rows, len(result.to_pandas()), len(result.to_polars())
    (4, 4, 4)
    >>> [row["agent"] for row in result.summary()], list(result.to_json())
    (['lints', 'uniform'], ['results'])
    >>> type(feelgood.RunResult.load(result.save(tempfile.mkdtemp() + "/mine"))).__name__
    'RunResult'
    """

    results: tuple[AgentResult, ...]
    interrupted: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each result: the agent's, with the settings that tell it from others.

        Results on the same testbed have different labels. Where they are asked for, `alpha=1` is
        the same as `α=1`.
        """
        return tuple(series.label for series in name_series(self.results))

    def _blocks(self) -> Iterator[tuple[str, list[tuple[str, AgentResult]]]]:
        """A title and the labelled results, testbed by testbed."""
        series = name_series(self.results)
        for problem in dict.fromkeys(s.problem for s in series):
            members = [(s.label, s.result) for s in series if s.problem == problem]
            yield run_in_words([r for _, r in members], problem), members

    def __repr__(self) -> str:
        if not self.results:
            return "no results"
        lines = []
        for title, members in self._blocks():
            lines.append(f"{title}: mean regret ± std")
            width = max(len(label) for label, _ in members)
            lines += [f"  {label:<{width}}  {regret_in_words(r)}" for label, r in members]
        if len(lines) > MOST_LINES:
            more = len(lines) - MOST_LINES + 1
            lines = [*lines[: MOST_LINES - 1], f"  … and {more:,} lines more"]
        if self.interrupted:
            lines.append("interrupted before the end")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
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
                    regret_in_words(r),
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

    def plot(
        self,
        *,
        log_x: bool = False,
        log_y: bool = False,
        band: Literal["quantile", "std"] | Any = "quantile",
    ) -> "alt.LayerChart | alt.ConcatChart | Any":
        """The chart of mean cumulative regret along the run, one panel per testbed.

        `band` is what is shaded: 10 to 90 % of the seeds, or `"std"`, mean ± standard deviation.

        **Example:**

        >>> import feelgood
        >>> result = feelgood.run("linear-20", "uniform", rounds=50, seeds=2)
        >>> chart = result.plot(band="std")  # an Altair chart: `chart.save("regret.html")`
        >>> sorted({layer["mark"]["type"] for layer in chart.to_dict()["layer"]})
        ['area', 'line', 'point']
        """
        from feelgood.report.charts.curves import regret_curves  # Altair takes long to import
        from feelgood.report.theme import theme_config

        checked: Any = parse_choice("band", band, ("quantile", "std"))
        options = {"log_x": bool(log_x), "log_y": bool(log_y), "band": checked}
        chart = regret_curves(self.results, **options)
        return chart.configure(**theme_config())

    def to_arrow(self) -> "pa.Table":
        """One row per agent, setting and seed, with the curve as a list column."""
        return to_arrow(self.results)

    def to_pandas(self) -> "pd.DataFrame":
        """As `to_arrow`, for pandas."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> "pl.DataFrame":
        """As `to_arrow`, for polars."""
        return to_polars(self.to_arrow())

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
        return save_results(self.results, folder, interrupted=self.interrupted, force=force)

    def compare(self, baseline: str | int | AgentResult | Any | None = None) -> Comparisons:
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
        return compare_all(self.results, baseline)

    @classmethod
    def load(cls, folder: str | Path | Any) -> "RunResult":
        """The results that `save`, `feelgood run --out` or a study wrote to a folder."""
        return load(folder)

    def __iter__(self) -> Iterator[AgentResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, which: Any) -> AgentResult:
        """By position, by agent name (the first with that name) or by label."""
        with contextlib.suppress(TypeError):
            return self.results[operator.index(which)]
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
        return to_tree(self.results, self.interrupted)

    def summary(self) -> list[dict[str, Any]]:
        """One row per agent and setting: how the final and the simple regret are spread."""
        return [
            {
                "agent": r.agent,
                "testbed": r.testbed,
                "settings": dict(r.settings),
                "rounds": r.rounds,
                "seeds": len(r.seeds),
                **_summed_up(r),
                "status": r.status,
                "compile_s": r.compile_s,
                "run_s": r.run_s,
            }
            for r in self.results
        ]


def _summed_up(result: AgentResult) -> dict[str, Any]:
    """The numbers that have one value per seed, over all seeds."""
    out: dict[str, Any] = {}
    for quantity in schema.QUANTITIES:
        if quantity.axes is Axes.SEED and quantity.summed_up != "no":
            summary = Summary.of(result.values_of(quantity))
            if quantity.summed_up == "mean":
                out[quantity.name] = summary.mean
            else:
                parts = dataclasses.asdict(summary).items()
                out |= {f"{quantity.prefix}_{part}": value for part, value in parts}
    return out


@RUNS.register("run")
def _run_of(results: tuple[AgentResult, ...]) -> RunResult:
    return RunResult(results)


def load(folder: str | Path | Any) -> RunResult:
    """The results in a folder that `RunResult.save`, `feelgood run --out` or a study wrote.

    The numbers are those of the run, bit for bit; seeds are in ascending order.

    **Example:**

    >>> import feelgood, tempfile
    >>> folder = tempfile.mkdtemp() + "/mine"
    >>> _ = feelgood.run("linear-20", "uniform", rounds=50, seeds=2).save(folder)
    >>> [r.agent for r in feelgood.load(folder)]
    ['uniform']
    """
    return RunResult(*load_results(folder))
