"""Ours beside the published numbers: comparisons from the shelf, counts, what differs and why."""

import functools
from collections.abc import Mapping, Sequence

from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import TITLES, to_row
from feelgood.report.published_comparisons import (
    ROW_LEVEL,
    PublishedComparison,
    PublishedVerdict,
    compare_row,
)
from showdown.book import Book, grid, items, section
from showdown.effects import number
from showdown.shelf import Shelf, unsmoothed

NO_REASON = "no reason is known"


@functools.lru_cache(maxsize=4)
def comparisons(shelf: Shelf) -> tuple[PublishedComparison, ...]:
    """One for each of the published numbers, in the paper's order."""
    return tuple(
        compare_row(to_row(published), shelf.by_number.get(i, "it has not been run"))
        for i, published in enumerate(all_published())
    )


def counted(found: Sequence[PublishedComparison]) -> dict[PublishedVerdict, int]:
    """How many have which verdict."""
    return {v: sum(c.verdict is v for c in found) for v in PublishedVerdict}


def share_sentence(found: Sequence[PublishedComparison]) -> str:
    """How many of the comparable numbers agree."""
    counts = counted(found)
    comparable = counts[PublishedVerdict.AGREES] + counts[PublishedVerdict.DIFFERS]
    if not comparable:
        return (
            f"None of {len(found)} published numbers was compared: "
            f"{counts[PublishedVerdict.NOT_COMPARABLE]} cannot be, for the reasons below the "
            f"tables, and {counts[PublishedVerdict.NOT_RUN]} were not run."
        )
    unknown = sum(c.reason == NO_REASON for c in found)
    reasons = f"{unknown} of them for no known reason" if unknown else "each for a possible reason"
    return (
        f"Of {len(found)} published numbers {comparable} were compared: {_share(counts)}, "
        f"{counts[PublishedVerdict.DIFFERS]} differ, {reasons}. "
        f"{counts[PublishedVerdict.NOT_COMPARABLE]} cannot be compared, "
        f"{counts[PublishedVerdict.NOT_RUN]} were not run."
    )


def _share(counts: Mapping[PublishedVerdict, int]) -> str:
    agree = counts[PublishedVerdict.AGREES]
    return f"{agree} agree ({100 * agree / (agree + counts[PublishedVerdict.DIFFERS]):.0f} %)"


def _without_smoothed(found: Sequence[PublishedComparison]) -> str:
    """The same without agents that repeat others."""
    counts = counted([c for c in found if unsmoothed(c.row.agent) is None])
    comparable = counts[PublishedVerdict.AGREES] + counts[PublishedVerdict.DIFFERS]
    if not comparable:
        return ""
    return (
        "At b = 1000 a smoothed agent is the same function as the plain one. Without the smoothed "
        f"{comparable} were compared: {_share(counts)}."
    )


FAMILIES = ("linear", "logistic", "wheel")


def _family(comparison: PublishedComparison) -> str:
    name = comparison.row.testbed.split("-")[0]
    return name if name in FAMILIES else "data sets"


def _by_family(found: Sequence[PublishedComparison]) -> str:
    """How many agree, and how many cannot be compared, in each family."""
    agree, refused = [], []
    for family in (*FAMILIES, "data sets"):
        counts = counted([c for c in found if _family(c) == family])
        comparable = counts[PublishedVerdict.AGREES] + counts[PublishedVerdict.DIFFERS]
        if comparable:
            agree.append(f"{family} {_share(counts)} of {comparable}")
        if counts[PublishedVerdict.NOT_COMPARABLE]:
            refused.append(f"{family} {counts[PublishedVerdict.NOT_COMPARABLE]}")
    parts = [f"By family: {', '.join(agree)}."] if agree else []
    parts += [f"Not comparable are: {', '.join(refused)}."] if refused else []
    return " ".join(parts)


def reproduction(book: Book) -> str:
    """Which published numbers could be reproduced?"""
    found = comparisons(book.shelf)
    rows = []
    for name in TITLES:
        own = [c for c in found if c.row.published.table == name]
        rows.append([f"`{name}`", str(len(own)), *(str(n) for n in counted(own).values())])
    rows.append(["all", str(len(found)), *(str(n) for n in counted(found).values())])
    header = ("table", "numbers", *(v.value for v in PublishedVerdict))
    return section(
        "Which published numbers could be reproduced?",
        " ".join(
            filter(None, [share_sentence(found), _by_family(found), _without_smoothed(found)])
        ),
        f"Welch's test of equal means at level {ROW_LEVEL:g} for each number: [how to read the "
        "verdicts](../verdicts.md). Where regrets scatter widely, means far apart may agree. A "
        "number that stands in several tables counts in each. Where the paper leaves settings open "
        "or contradicts itself, [the reading](../reproducing.md) is the one that fits its numbers. "
        "The group pages have every number with its reason.",
        grid(header, rows),
        section("Different for no known reason", unexplained(found), depth=3),
    )


def unexplained(found: Sequence[PublishedComparison]) -> str:
    """The rows that differ without a reason."""
    lines = [
        f"`{c.row.published.table}`, {c.row.testbed}, {c.row.label}, "
        f"{c.row.published.metric.replace('_', ' ')}: ours {number(c.ours.mean)} ± "
        f"{number(c.ours.std)} ({c.ours.count} seeds), published {number(c.row.published.mean)} ± "
        f"{number(c.row.published.std)} ({c.row.published.seeds} seeds)."
        for c in found
        if c.reason == NO_REASON and c.ours is not None
    ]
    return items(lines) or "None."
