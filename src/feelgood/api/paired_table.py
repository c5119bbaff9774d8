"""Results side by side: differences over common seeds, how sure they are, and a word on each."""

import contextlib
import dataclasses
import html
import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from feelgood.api.data_frames import to_pandas
from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.numbers import figure
from feelgood.engine.results import AgentResult
from feelgood.report.ranking import compare_results
from feelgood.report.series import Series, in_symbols, name_series
from feelgood.stats.pairs import PairedDifference

if TYPE_CHECKING:
    import pandas as pd

#: Rate of false verdicts among all rows of a table together (Bonferroni's bound).
FALSE_VERDICT_RATE = 0.05
NOTE = (
    "difference: mean regret less that of the baseline over common seeds, with its 95 % interval; "
    "verdict: paired t-test, all rows of a testbed together at 5 %"
)


@dataclasses.dataclass(frozen=True)
class Compared:
    """One result against the baseline of its testbed."""

    testbed: str
    agent: str
    baseline: str
    difference: PairedDifference
    #: How many results were compared with this baseline; the verdict multiplies p by it.
    tests: int

    @property
    def verdict(self) -> str:
        """Whether the regret is lower or higher than the baseline's, as far as can be told."""
        d = self.difference
        if d.dropped:
            return f"cannot be told: chains diverged on {d.dropped} of {d.count + d.dropped} seeds"
        if not math.isfinite(d.p):
            return "cannot be told from one seed"
        if self.tests * d.p > FALSE_VERDICT_RATE or d.mean == 0.0:
            return "no difference seen"
        return "lower regret" if d.mean < 0 else "higher regret"

    def cells(self) -> tuple[str, str, str, str]:
        """Agent, difference, interval and verdict, as texts."""
        d = self.difference
        sign = "+" if d.mean > 0 else ""
        known = math.isfinite(d.low)
        interval = f"({figure(d.low)} to {figure(d.high)})" if known else "–"
        return self.agent, f"{sign}{figure(d.mean)}", interval, self.verdict


@dataclasses.dataclass(frozen=True, repr=False)
class Comparisons:
    """The paired table: one row per result and testbed, the baseline left out."""

    rows: tuple[Compared, ...]

    def __iter__(self) -> Iterator[Compared]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: int) -> Compared:
        return self.rows[which]

    def _blocks(self) -> Iterator[tuple[str, list[Compared]]]:
        for testbed in dict.fromkeys(row.testbed for row in self.rows):
            members = [row for row in self.rows if row.testbed == testbed]
            seeds = members[0].difference.count + members[0].difference.dropped
            yield f"{testbed}, {seeds} seeds, against {members[0].baseline}", members

    def __repr__(self) -> str:
        if not self.rows:
            return "nothing to compare"
        lines = []
        for title, members in self._blocks():
            texts = [row.cells() for row in members]
            widths = [max(len(row[i]) for row in texts) for i in range(3)]
            lines.append(f"{title}: difference in mean regret, 95 % interval")
            lines += [
                f"  {a:<{widths[0]}}  {d:>{widths[1]}}  {i:<{widths[2]}}  {verdict}"
                for a, d, i, verdict in texts
            ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        out = []
        for title, members in self._blocks():
            out.append(f"<tr><th colspan=4 style='text-align:left'>{html.escape(title)}</th></tr>")
            heads = ("agent", "difference", "95 % interval", "verdict")
            out.append("<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>")
            for row in members:
                cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row.cells())
                out.append(f"<tr>{cells}</tr>")
        return f"<table>{''.join(out)}</table><small>{html.escape(NOTE)}</small>"

    def to_pandas(self) -> "pd.DataFrame":
        """One row per result: testbed, agent, baseline, difference, low, high, p, seeds, verdict.

        `p` is that of one row alone; the verdict counts the rows.
        """
        from feelgood.core.arrow import pa

        schema = pa.schema(
            [
                *((name, pa.string()) for name in ("testbed", "agent", "baseline")),
                *((name, pa.float64()) for name in ("difference", "low", "high", "p")),
                ("seeds", pa.int64()),
                ("dropped", pa.int64()),
                ("verdict", pa.string()),
            ]
        )
        records = [
            {
                "testbed": row.testbed,
                "agent": row.agent,
                "baseline": row.baseline,
                "difference": row.difference.mean,
                "low": row.difference.low,
                "high": row.difference.high,
                "p": row.difference.p,
                "seeds": row.difference.count,
                "dropped": row.difference.dropped,
                "verdict": row.verdict,
            }
            for row in self.rows
        ]
        return to_pandas(pa.Table.from_pylist(records, schema=schema))


def compare_all(results: Sequence[AgentResult], baseline: Any = None) -> Comparisons:
    """Every result of a run against a baseline; see `RunResult.compare`."""
    series = name_series(results)
    rows: list[Compared] = []
    for problem in dict.fromkeys(s.problem for s in series):
        members = [s for s in series if s.problem == problem]
        base = _baseline(results, members, baseline)
        others = [s for s in members if s is not base]
        rows += [
            Compared(
                problem, s.label, base.label, compare_results(s.result, base.result)[0], len(others)
            )
            for s in others
        ]
    if not rows:
        raise FeelgoodError("there is nothing to compare: run at least two agents on a testbed.")
    return Comparisons(tuple(rows))


def _baseline(results: Sequence[AgentResult], members: list[Series], which: Any) -> Series:
    """The member that the others are compared with."""
    if which is None:
        finite = [s for s in members if s.result.regret.count == len(s.result.seeds)]
        return min(finite or members, key=lambda s: s.result.regret.mean)
    if isinstance(which, AgentResult):
        found = [s for s in members if s.result is which]
    elif isinstance(which, str):
        found = [s for s in members if s.label == in_symbols(which)]
        found = found or [s for s in members if s.result.agent == which]
    else:
        place = len(results)
        with contextlib.suppress(TypeError):
            place = place if isinstance(which, bool) else operator.index(which)
        inside = -len(results) <= place < len(results)
        found = [s for s in members if inside and s.result is results[place]]
    if len(found) == 1:
        return found[0]
    labels = [s.label for s in members]
    if found:
        raise FeelgoodError(
            f"the baseline {shown(which)} has several settings: use one of {', '.join(labels)}."
        )
    hint = did_you_mean(which, labels) if isinstance(which, str) else f"use '{labels[0]}'."
    raise FeelgoodError(f"there is no baseline {shown(which)} on {members[0].problem}: {hint}")
