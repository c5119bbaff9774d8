"""Ours beside the published: what the comparison of two numbers says, and why.

Numbers agree where both means are equal within a margin by two one-sided tests. They differ where
Welch's test says so and as few of our own seeds would not give such a mean by chance. Where neither
speaks, nothing is said but what could have been seen.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import mean_std_count
from feelgood.engine.results import AgentResult
from feelgood.paper.published_numbers import Published
from feelgood.paper.published_rows import RELEASED, PublishedRow
from feelgood.paper.reproducing import NOT_YET
from feelgood.report.ranking import values_at
from feelgood.stats.equivalence import (
    EquivalenceTest,
    chance_of_mean,
    ratio_tost,
    smallest_difference,
    smallest_resampled,
    tost,
)
from feelgood.stats.summary import Summary
from feelgood.stats.welch import WelchTest, welch

#: Level of Welch's test of one row: a hundred right rows have one false "differs" on average.
ROW_LEVEL = 0.01
#: Means are as good as equal within this part of the published one, at this level.
MARGIN, MARGIN_LEVEL = 0.2, 0.05
#: Half of the last digit that the paper prints: the margin of a published 0.
_LAST_DIGIT = 0.05
#: The smallest difference that could have been seen is the one seen with this probability.
POWER = 0.8
#: Resamples of our seeds where the first few thousand say that they are apart.
FINE_DRAWS = 200_000
#: Acceptance at the end of a run below which a chain counts as frozen.
FROZEN = 0.01
#: What is said of a row that differs where nothing is known.
NO_REASON = "no reason is known"
#: How the verdicts come about; the level of Welch's test goes in.
HOW_JUDGED = (
    f"Verdicts: agrees, equal within ±{100 * MARGIN:g} % by two one-sided tests at level "
    f"{MARGIN_LEVEL:g}; differs, not so and apart at level {{:g}} by Welch's test and among "
    "resamples of our seeds; else too "
    "uncertain to tell, with the smallest difference that could have been seen."
)


class PublishedVerdict(enum.Enum):
    """What the comparison of two numbers says."""

    AGREES = "agrees"
    EXPLAINED = "explained"
    DIFFERS = "differs"
    UNCERTAIN = "too uncertain to tell"
    CANNOT = "cannot be run"
    NOT_RUN = "not run yet"

    @property
    def tested(self) -> bool:
        """Whether the means could be compared."""
        return self not in (PublishedVerdict.CANNOT, PublishedVerdict.NOT_RUN)


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
    #: Why they differ or were not compared; empty where they agree.
    reason: str
    #: Hidden layers of our agent's network; empty where it has none.
    layers: str = ""
    #: Whether both means are equal within the margin; None where nothing was run.
    equivalence: EquivalenceTest | None = None
    #: What the released code has; None where it was not asked.
    released: "PublishedComparison | None" = None
    #: Whether our seeds are too few for any verdict, whatever the tests say.
    few: bool = False
    #: The smallest difference of means that both tests of *differs* would have seen.
    smallest: float = math.nan
    #: Our run itself; None where there is none.
    run: AgentResult | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """The agent with what sets the row apart, and its network."""
        return f"{self.row.label} [{self.layers}]" if self.layers else self.row.label

    @property
    def evidence(self) -> str:
        """The numbers behind the verdict."""
        theirs, whole = self.released, self.rounds == self.row.rounds
        if theirs is not None and not theirs.row.explains:
            theirs = None
        if theirs is not None and (self.verdict is PublishedVerdict.EXPLAINED or not whole):
            return (
                self.reason
                if theirs.ours is None
                else f"{theirs.row.stands_for}: {theirs.evidence}"
            )
        if self.ours is None or self.equivalence is None or not whole:
            return self.reason
        shown = mean_std_count(self.ours.mean, self.ours.std, self.ours.count)
        if self.few:
            return f"{shown}; {self.reason}"
        if self.verdict is PublishedVerdict.UNCERTAIN:
            least = in_percent(self.smallest, self.row.published.mean)
            return f"{shown}; a difference below {least} could not have been seen"
        return f"{shown}; 90 % interval of the difference {self.interval}"

    @property
    def interval(self) -> str:
        """The 90 % interval of our mean less the published one, in per cent of the latter."""
        if self.equivalence is None or math.isnan(self.equivalence.low):
            return "–"
        if self.row.published.mean <= 0.0:
            return "–"
        ends = (self.equivalence.low, self.equivalence.high)
        low, high = (in_percent(end, 1.0, sign=True) for end in ends)
        return f"{low.removesuffix(' %')} to {high}"


def in_percent(value: float, of: float, sign: bool = False) -> str:
    """`12 %` of a published mean; a mean of 0 has no percentages."""
    if math.isnan(value) or of == 0.0:
        return "–"
    if math.isinf(value):
        return f"{'−' if value < 0 else ''}∞ %"
    share = 100.0 * value / of
    digits = 1 if abs(share) < 10 else 0
    return f"{share:{'+' if sign else ''},.{digits}f} %"


def compare_row(
    row: PublishedRow, result: AgentResult | str, level: float = ROW_LEVEL
) -> PublishedComparison:
    """The comparison of a published number with our result; a string says why there is none."""
    if isinstance(result, str):
        verdict = PublishedVerdict.NOT_RUN if result == NOT_YET else PublishedVerdict.CANNOT
        return PublishedComparison(row, None, 0, 0, None, verdict, result)
    metric = "simple_regret" if row.published.metric == "simple_regret" else "final_regret"
    values = values_at(result, result.seeds, metric)
    ours = Summary.of(values)
    diverged = len(values) - ours.count
    theirs = row.published
    test = welch(ours.mean, ours.std, ours.count, theirs.mean, theirs.std, theirs.seeds, level)
    equivalence = _equivalence(ours, theirs, test)
    by_chance = chance_of_mean(values, theirs.mean, theirs.seeds)
    if by_chance <= level:  # Corrections for many tests ask how small it is.
        by_chance = chance_of_mean(values, theirs.mean, theirs.seeds, FINE_DRAWS)
    smallest = float(
        np.maximum(
            smallest_difference(test, POWER),
            smallest_resampled(values, theirs.seeds, level, POWER),
        )
    )
    if by_chance > test.p:
        test = dataclasses.replace(test, p=by_chance)
    verdict, reason = _judged(row, result, diverged, test, equivalence)
    return PublishedComparison(
        row=row,
        ours=ours,
        rounds=result.rounds,
        diverged=diverged,
        test=test,
        verdict=verdict,
        reason=reason,
        layers=str(result.settings.get("layers", "")),
        equivalence=equivalence,
        few=len(result.seeds) < 2,
        smallest=smallest,
        run=result,
    )


def _equivalence(ours: Summary, theirs: Published, test: WelchTest) -> EquivalenceTest:
    """Whether the means are equal within the margin, in parts of the published mean.

    A published 0 has no parts: the margin is then that of its rounding.
    """
    if theirs.mean > 0.0:
        samples = (ours.mean, ours.std, ours.count), (theirs.mean, theirs.std, theirs.seeds)
        return ratio_tost(*samples, MARGIN, MARGIN_LEVEL)
    return tost(test, _LAST_DIGIT, MARGIN_LEVEL)


def _judged(
    row: PublishedRow,
    result: AgentResult,
    diverged: int,
    test: WelchTest,
    equivalence: EquivalenceTest,
) -> tuple[PublishedVerdict, str]:
    """The verdict and, where they do not agree, why."""
    if result.rounds != row.rounds:
        said = f"run with T = {result.rounds:,} rounds, published with T = {row.rounds:,}"
        return PublishedVerdict.NOT_RUN, said
    if diverged:
        said = f"{diverged} of our {len(result.seeds)} chains diverged; the mean is of the others"
        return PublishedVerdict.DIFFERS, said
    if len(result.seeds) < 2:
        return PublishedVerdict.UNCERTAIN, "one seed of ours is too few for a test of the means"
    if equivalence.equivalent and row.reading == RELEASED and row.explains:
        return PublishedVerdict.EXPLAINED, ""
    if equivalence.equivalent:
        return PublishedVerdict.AGREES, "" if row.explains else row.remark or ""
    if not test.rejects:
        return PublishedVerdict.UNCERTAIN, ""
    known = f"possible reason: {row.remark}" if row.remark else ""
    return PublishedVerdict.DIFFERS, _joined(_frozen(result), known) or NO_REASON


def with_released(own: PublishedComparison, released: PublishedComparison) -> PublishedComparison:
    """The verdict of both readings together.

    What agrees with the paper's text agrees. What the released code reproduces is explained.
    Otherwise the verdict is that of the text, or the code's where the text was not run. A run that
    is not the released code changes no verdict: its number is shown.
    """
    both = dataclasses.replace(own, released=released)
    number = ""
    if released.ours is not None:
        shown = mean_std_count(released.ours.mean, released.ours.std, released.ours.count)
        number = f"{released.row.stands_for} has {shown}"
    if own.verdict is PublishedVerdict.AGREES:
        return both
    if not released.row.explains:
        return dataclasses.replace(both, reason=_joined(own.reason, number))
    if released.verdict is PublishedVerdict.EXPLAINED:
        return dataclasses.replace(both, verdict=released.verdict, reason=number)
    if not own.verdict.tested and released.verdict.tested:
        reason = _joined(number, released.reason)
        return dataclasses.replace(both, verdict=released.verdict, reason=reason)
    if released.verdict.tested:
        said = f"{number}, {_told(released)}"
        return dataclasses.replace(both, reason=_joined(own.reason, said))
    if not own.verdict.tested and PublishedVerdict.NOT_RUN in (own.verdict, released.verdict):
        waiting = own if own.verdict is PublishedVerdict.NOT_RUN else released
        return dataclasses.replace(both, verdict=waiting.verdict, reason=waiting.reason)
    return both


def _joined(*said: str) -> str:
    return "; ".join(filter(None, said))


def _told(released: PublishedComparison) -> str:
    """What was seen of the released code where it does not explain the number."""
    if released.verdict is PublishedVerdict.DIFFERS:
        return "which differs, too"
    return "too few seeds to tell" if released.few else "not told apart from the published"


def _frozen(result: AgentResult) -> str:
    """Says so where our chains have stopped moving: the reason is then not the paper's."""
    accepted = result.health.get("acceptance")
    if accepted is None or not np.nanmean(accepted[:, -1]) < FROZEN:
        return ""
    return f"our chains end frozen, with less than {FROZEN:.0%} of proposals accepted"


def compare_rows(
    rows: Sequence[PublishedRow],
    results: Sequence[AgentResult | str],
    level: float = ROW_LEVEL,
    released: Sequence[PublishedComparison] | None = None,
) -> tuple[PublishedComparison, ...]:
    """Comparisons of rows with the results that belong to them, in the same order.

    With what the released code has for the same rows, the verdicts are those of both together.
    """
    if not 0.0 < level < 1.0:
        raise FeelgoodError(f"level = {level} is not allowed: use a number between 0 and 1.")
    own = tuple(compare_row(r, ours, level) for r, ours in zip(rows, results, strict=True))
    if released is None:
        return own
    return tuple(map(with_released, own, released))


def counts(comparisons: Sequence[PublishedComparison]) -> str:
    """How many rows have which verdict, in words."""
    numbers = {v: sum(c.verdict is v for c in comparisons) for v in PublishedVerdict}
    return ", ".join(f"{v.value}: {n}" for v, n in numbers.items() if n)


def caption(
    comparisons: Sequence[PublishedComparison], title: str, level: float = ROW_LEVEL
) -> str:
    """Title, what the columns are, and the level of the verdicts."""
    return (
        f"{title}. Mean ± sample standard deviation (number of seeds). {HOW_JUDGED.format(level)} "
        f"Rows: {counts(comparisons)}."
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
    agreeing = (PublishedVerdict.AGREES, PublishedVerdict.EXPLAINED)
    kept = sum(c.verdict in agreeing for c in compared)
    unclear = sum(c.verdict is PublishedVerdict.UNCERTAIN for c in compared)
    differing = [c.label for c in compared if c.verdict is PublishedVerdict.DIFFERS]
    first = f"{kept} of {len(compared)} rows agree with the paper"
    first += f", {unclear} cannot be told with these seeds" if unclear else ""
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
