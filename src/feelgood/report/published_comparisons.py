"""Ours beside the published: what the comparison of two numbers says, and why.

The verdict comes from Welch's test on the two means at a level that is stated with the table.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.paper.published_rows import PublishedRow
from feelgood.report.ranking import values_at
from feelgood.stats.summary import Summary
from feelgood.stats.welch import WelchTest, welch

#: Level of the test of one row: a hundred right rows have one false "differs" on average.
ROW_LEVEL = 0.01
#: Acceptance at the end of a run below which a chain counts as frozen.
FROZEN = 0.01


class PublishedVerdict(enum.Enum):
    """What the comparison of two numbers says."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"
    NOT_RUN = "not run"

    @property
    def tested(self) -> bool:
        """Whether the means could be compared."""
        return self in (PublishedVerdict.AGREES, PublishedVerdict.DIFFERS)


@dataclasses.dataclass(frozen=True)
class PublishedComparison:
    """A published number, ours beside it, and what to make of the two."""

    row: PublishedRow
    ours: Summary | None
    #: Rounds and chains of our run; chains that diverged are not in `ours`.
    rounds: int
    diverged: int
    test: WelchTest | None
    verdict: PublishedVerdict
    #: Why they cannot be compared or differ; empty where they agree.
    reason: str
    #: Hidden layers of our agent's network; empty where it has none.
    layers: str = ""
    #: Our run itself; None where there is none.
    run: AgentResult | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """The agent with what sets the row apart, and its network."""
        return f"{self.row.label} [{self.layers}]" if self.layers else self.row.label


def compare_row(
    row: PublishedRow, result: AgentResult | str, level: float = ROW_LEVEL
) -> PublishedComparison:
    """The comparison of a published number with our result; a string says why there is none."""
    if isinstance(result, str):
        return PublishedComparison(row, None, 0, 0, None, PublishedVerdict.NOT_RUN, result)
    values = values_at(result, result.seeds, "final_regret")
    if row.published.metric == "simple_regret":
        values = values_at(result, result.seeds, "simple_regret")
    ours = Summary.of(values)
    diverged = len(values) - ours.count
    layers = str(result.settings.get("layers", ""))
    theirs = row.published
    test = welch(ours.mean, ours.std, ours.count, theirs.mean, theirs.std, theirs.seeds, level)

    def judged(verdict: PublishedVerdict, reason: str) -> PublishedComparison:
        numbers = (row, ours, result.rounds, diverged, test, verdict, reason, layers)
        return PublishedComparison(*numbers, run=result)

    if row.not_comparable is not None:
        return judged(PublishedVerdict.NOT_COMPARABLE, row.not_comparable)
    if result.rounds != row.rounds:
        return judged(
            PublishedVerdict.NOT_COMPARABLE,
            f"run with T = {result.rounds:,} rounds, published with T = {row.rounds:,}",
        )
    if diverged:
        return judged(
            PublishedVerdict.DIFFERS,
            f"{diverged} of our {len(values)} chains diverged; the mean is that of the others",
        )
    if ours.count < 2:
        return judged(
            PublishedVerdict.NOT_COMPARABLE, "one seed of ours is too few for a test of the means"
        )
    if not test.rejects:
        return judged(PublishedVerdict.AGREES, "")
    reasons = [_frozen(result), f"possible reason: {row.remark}" if row.remark else ""]
    return judged(
        PublishedVerdict.DIFFERS, "; ".join(filter(None, reasons)) or "no reason is known"
    )


def _frozen(result: AgentResult) -> str:
    """Says so where our chains have stopped moving: the reason is then not the paper's."""
    accepted = result.health.get("acceptance")
    if accepted is None or not np.nanmean(accepted[:, -1]) < FROZEN:
        return ""
    return f"our chains end frozen, with less than {FROZEN:.0%} of proposals accepted"


def compare_rows(
    rows: Sequence[PublishedRow], results: Sequence[AgentResult | str], level: float = ROW_LEVEL
) -> tuple[PublishedComparison, ...]:
    """Comparisons of rows with the results that belong to them, in the same order."""
    if not 0.0 < level < 1.0:
        raise FeelgoodError(f"level = {level} is not allowed: use a number between 0 and 1.")
    return tuple(compare_row(r, ours, level) for r, ours in zip(rows, results, strict=True))


def counts(comparisons: Sequence[PublishedComparison]) -> str:
    """How many rows have which verdict, in words."""
    numbers = {v: sum(c.verdict is v for c in comparisons) for v in PublishedVerdict}
    return ", ".join(f"{v.value}: {n}" for v, n in numbers.items() if n)


def caption(
    comparisons: Sequence[PublishedComparison], title: str, level: float = ROW_LEVEL
) -> str:
    """Title, what the columns are, and the level of the verdicts."""
    return (
        f"{title}. Mean ± sample standard deviation (number of seeds). Verdicts: Welch's two-sided "
        f"test of equal means at level {level:g} for each row. Rows: {counts(comparisons)}."
        f"{about_networks(comparisons)}"
    )


def about_networks(comparisons: Sequence[PublishedComparison]) -> str:
    """What the layers in brackets are and where they come from; empty where there are none."""
    if not any(c.layers for c in comparisons):
        return ""
    tuned = any(c.row.tuned for c in comparisons)
    return " In brackets: the hidden layers, " + (
        "chosen by tuning." if tuned else "as the paper's preset has them."
    )


def comparison_in_words(comparisons: Sequence[PublishedComparison]) -> str:
    """What a table of comparisons shows, in two plain sentences."""
    compared = [c for c in comparisons if c.verdict.tested]
    if not compared:
        return "No row can be compared with the paper: the table says why."
    differing = [c.label for c in compared if c.verdict is PublishedVerdict.DIFFERS]
    first = f"{len(compared) - len(differing)} of {len(compared)} rows agree with the paper"
    if differing:
        first += f"; {', '.join(differing[:3])}"
        first += f" and {len(differing) - 3} others" if len(differing) > 3 else ""
        first += " differ" if len(differing) > 1 else " differs"
    by_testbed: dict[str, list[PublishedComparison]] = {}
    for c in compared:
        if c.ours is not None and c.ours.count:
            by_testbed.setdefault(c.row.testbed, []).append(c)
    pairs = {name: _best(rows) for name, rows in by_testbed.items() if len(rows) > 1}
    if not pairs:
        return f"{first}."
    if len(pairs) == 1:
        ((name, (ours, theirs)),) = pairs.items()
        assert ours.ours is not None
        second = (
            f"Of these agents {ours.label} has the lowest regret on {name}, {ours.ours.mean:,.1f} "
            f"on average; in the paper it is {theirs.label} with {theirs.row.published.mean:,.1f}"
        )
    else:
        same = sum(ours.row.agent == theirs.row.agent for ours, theirs in pairs.values())
        second = (
            f"The agent with the lowest regret is the paper's on {same} of {len(pairs)} testbeds"
        )
    return f"{first}. {second}."


def _best(rows: Sequence[PublishedComparison]) -> tuple[PublishedComparison, PublishedComparison]:
    """The row with the lowest mean of ours, and that of the paper."""
    ours = min(rows, key=lambda c: c.ours.mean if c.ours is not None else math.inf)
    return ours, min(rows, key=lambda c: c.row.published.mean)
