"""Which of the published numbers a set of results stands beside."""

from collections.abc import Mapping, Sequence

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult, run_key
from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import READINGS, PublishedRow, missing, to_row
from feelgood.report.published_comparisons import (
    PublishedComparison,
    compare_row,
    with_released,
)
from feelgood.studies.planning import plan_cells


def find_comparisons(results: Sequence[AgentResult]) -> list[PublishedComparison]:
    """A comparison for every published number whose run is among the results.

    A run belongs to a number when agent, testbed and every setting are those of the paper's
    preset. Where there are several lengths of it, the paper's own is taken, else the longest. Runs
    of the released code are put beside the same numbers.
    """
    known = {run_key(r): r for r in results}
    lengths: dict[tuple[str, str], set[int]] = {}
    for r in results:
        lengths.setdefault((r.testbed, r.agent), set()).add(r.rounds)
    found = []
    for number in all_published():
        beside = [_compared(to_row(number, reading), lengths, known) for reading in READINGS]
        here = [c for c in beside if c is not None]
        if here:
            found.append(with_released(*here) if len(here) == 2 else here[0])
    return found


def _compared(
    row: PublishedRow, lengths: Mapping[tuple[str, str], set[int]], known: dict[str, AgentResult]
) -> PublishedComparison | None:
    """The comparison with the run that belongs to a row; None where there is none."""
    rounds = lengths.get((row.testbed, row.agent))
    if not rounds or missing(row) is not None:
        return None
    ours = _match(row, rounds, known)
    return None if ours is None else compare_row(row, ours)


def papers_betas(
    results: Sequence[AgentResult], comparisons: Sequence[PublishedComparison]
) -> list[str | None]:
    """The paper's β of the results that stand beside published numbers, as the paper writes it.

    None where a result is no such run, or where the paper has it at several β.
    """
    found: dict[str, set[float]] = {}
    for c in comparisons:
        if c.run is not None and c.row.published.beta is not None:
            found.setdefault(run_key(c.run), set()).add(c.row.published.beta)
    betas = [found.get(run_key(r), set()) for r in results]
    return [papers_number(*b) if len(b) == 1 else None for b in betas]


def papers_number(value: float | None) -> str:
    """A number as the paper writes it."""
    return "–" if value is None else "10³" if value == 1000 else f"{value:g}"


def _match(
    row: PublishedRow, lengths: set[int], known: dict[str, AgentResult]
) -> AgentResult | None:
    for rounds in sorted(lengths, key=lambda n: (n != row.rounds, -n)):
        key = row_key(row, rounds)
        if key is None:
            return None
        if key in known:
            return known[key]
    return None


def row_key(row: PublishedRow, rounds: int) -> str | None:
    """`run_key` of the run that belongs to a published number.

    None where its data set is not on this machine, so that its settings cannot be told.
    """
    try:
        (cell,) = plan_cells(
            row.testbed,
            row.agent,
            settings=row.settings,
            preset=row.preset,
            rounds=rounds,
            seeds=1,
            testbed_settings=row.testbed_settings,
        )
    except FeelgoodError:
        return None
    return run_key(cell)
