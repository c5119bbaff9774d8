"""Verdicts on the published numbers from the shelf, and how many have which."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.paper.published_numbers import Published, all_published
from feelgood.paper.published_rows import RELEASED, PublishedRow, missing, to_row
from feelgood.paper.reproducing import NOT_YET
from feelgood.report.published_comparisons import (
    PublishedComparison,
    PublishedVerdict,
    compare_row,
    with_released,
)
from feelgood.stats.false_discovery import benjamini_hochberg
from feelgood.stats.holm import holm
from showdown.effects import FEWEST_SEEDS
from showdown.shelf import Shelf

#: Level of the corrected tests: that any is false (Holm), or the share of false ones.
CORRECTED_LEVEL = 0.05
#: The environment of logistic numbers that the released code explains.
ENVIRONMENT = "contexts of length 1 beside an unscaled θ* of logistic bandits (`scaling = arms`)"
FAMILIES = ("linear", "logistic", "wheel")
#: Where fewer seeds are all that there can be; the pages say so.
FEW_ALLOWED = ("cifar10",)
_V = PublishedVerdict
#: Agents with a network whose bonus the released code never switches on.
NO_BONUS = ("neural-fglmcts", "neural-sfglmcts")


def _of_linear_models(row: PublishedRow, agents: tuple[str, ...]) -> bool:
    name = row.published
    return name.testbed.startswith(("linear-", "logistic-")) and name.agent.endswith(agents)


#: Choices that the paper leaves open and that were made so that its numbers come out, with the
#: rows of which they are part.
FITTED: Mapping[str, Callable[[PublishedRow], bool]] = {
    "the temperatures": lambda row: _of_linear_models(row, ("lmcts", "malats")),
    "5 arms × 8 dimensions of linear-40": lambda row: row.published.testbed == "linear-40",
    "the 20 warm-up steps of MALA": lambda row: _of_linear_models(row, ("malats",)),
    ENVIRONMENT: lambda row: row.testbed.startswith("released-logistic-"),
    "5 arms, η and the step of the main logistic column there": lambda row: (
        row.testbed_settings.get("arms") == 5
    ),
}

# Verdicts ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def comparisons(shelf: Shelf) -> tuple[PublishedComparison, ...]:
    """One for each of the published numbers, in the paper's order."""
    return tuple(both_readings(shelf, i, one) for i, one in enumerate(all_published()))


def both_readings(shelf: Shelf, i: int, published: Published) -> PublishedComparison:
    """The paper's text and the released code beside one number."""
    row, code = to_row(published), to_row(published, RELEASED)
    ours, theirs = shelf.by_number.get(i), shelf.by_released_number.get(i)
    if theirs is None:
        code, theirs = at_no_bonus(shelf, code, ours)
    return with_released(
        enough(compare_row(row, _absent(row) if ours is None else ours)),
        enough(compare_row(code, _absent(code) if theirs is None else theirs)),
    )


def enough(c: PublishedComparison) -> PublishedComparison:
    """The comparison, without its verdict where that would rest on too few seeds of ours."""
    if c.run is None or not c.verdict.tested or c.row.testbed in FEW_ALLOWED:
        return c
    seeds = len(c.run.seeds)
    if seeds >= FEWEST_SEEDS:
        return c
    reason = f"{seeds} seeds of ours are too few: a verdict takes {FEWEST_SEEDS}"
    return dataclasses.replace(c, verdict=_V.UNCERTAIN, reason=reason, few=True)


def _absent(row: PublishedRow) -> str:
    return missing(row) or NOT_YET


def at_no_bonus(
    shelf: Shelf, code: PublishedRow, ours: AgentResult | None
) -> tuple[PublishedRow, AgentResult | None]:
    """Networks' Langevin agents with a bonus had none in the released code: ours without one.

    It is the same agent at λ = 0, or LMCTS of that data set, which the released settings name.
    """
    if code.published.agent not in NO_BONUS:
        return code, None
    plain = None if ours is None else shelf.plain(ours)
    if plain is None:
        plain = shelf.by_number.get(_lmcts_number(code.published))
    if plain is None:
        return code, None
    bare = dataclasses.replace(
        code,
        testbed=plain.testbed,
        agent=plain.agent,
        cannot=None,
        remark="the released agent has no bonus",
        stands_for="our agent without a bonus (the released code runs none)",
    )
    return bare, plain


def _lmcts_number(published: Published) -> int:
    """Where the paper has LMCTS on the same data set, by the same measure."""
    wanted = (published.testbed, "neural-lmcts", published.metric)
    numbers = enumerate(all_published())
    return next(i for i, one in numbers if (one.testbed, one.agent, one.metric) == wanted)


# Counts --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Agreement:
    """How many published numbers have which verdict."""

    #: All of them, and all without repeated publications of one number.
    published: int
    unique: int
    #: Of the unique ones; of all.
    verdicts: Mapping[PublishedVerdict, int]
    all_verdicts: Mapping[PublishedVerdict, int]
    #: Unique ones that were tested, those of them that were so in both readings, and all tests.
    tested: int
    twice: int
    tests: int
    #: Of the unique ones, those that keep their verdict after each correction for all tests.
    holm: Mapping[PublishedVerdict, int]
    bh: Mapping[PublishedVerdict, int]
    #: Unique ones that agree or are explained and rest on a choice that was fitted to the tables:
    #: all, those that Holm's correction keeps, and those of each choice.
    fitted: int
    fitted_holm: int
    by_choice: Mapping[str, int]
    #: Of those that differ after Holm's correction, the wheel's.
    wheel_holm: int


def counts(shelf: Shelf) -> Agreement:
    """The counts behind every sentence about agreement."""
    found = comparisons(shelf)
    once = unique(found)
    own = [tests_of(c) for c in once]
    all_tests = [one for tests in own for one in tests]
    kept = {correct: _kept(once, all_tests, correct) for correct in (holm, benjamini_hochberg)}
    return Agreement(
        published=len(found),
        unique=len(once),
        verdicts=counted(once),
        all_verdicts=counted(found),
        tested=sum(map(bool, own)),
        twice=sum(len(tests) == 2 for tests in own),
        tests=len(all_tests),
        holm=counted(kept[holm]),
        bh=counted(kept[benjamini_hochberg]),
        fitted=sum(map(bool, map(fitted_choices, once))),
        fitted_holm=sum(map(bool, map(fitted_choices, kept[holm]))),
        by_choice={one: sum(one in fitted_choices(c) for c in once) for one in FITTED},
        wheel_holm=sum(family(c) == "wheel" and c.verdict is _V.DIFFERS for c in kept[holm]),
    )


def _kept(
    once: Sequence[PublishedComparison],
    tests: Sequence[PublishedComparison],
    correct: Callable[[Any], Any],
) -> list[PublishedComparison]:
    """The numbers whose deciding test stands after a correction for all tests that were made.

    A number that is tested as the text and as the code have it has two chances: both count.
    """
    apart = correct(np.array([one.test.p for one in tests if one.test is not None]))
    close = correct(np.array([one.equivalence.p for one in tests if one.equivalence is not None]))
    corrected = {id(one): chances for one, *chances in zip(tests, apart, close, strict=True)}
    out = []
    for c in once:
        differs, equals = corrected.get(id(deciding(c)), (np.nan, np.nan))
        if (differs if c.verdict is _V.DIFFERS else equals) <= CORRECTED_LEVEL:
            out.append(c)
    return [c for c in out if c.verdict is not _V.UNCERTAIN]


def tests_of(c: PublishedComparison) -> list[PublishedComparison]:
    """The readings of a number that were tested: whole, with enough seeds, and of the code."""
    readings = [c]
    if c.released is not None and c.released.row.explains:
        readings.append(c.released)
    return [r for r in readings if r.test is not None and r.rounds == r.row.rounds and not r.few]


def fitted_choices(c: PublishedComparison) -> list[str]:
    """The choices, fitted to the tables, on which a number that agrees or is explained rests."""
    if c.verdict not in (_V.AGREES, _V.EXPLAINED):
        return []
    return [one for one, part_of in FITTED.items() if part_of(deciding(c).row)]


def deciding(c: PublishedComparison) -> PublishedComparison:
    """The reading that the verdict rests on."""
    whole = c.test is not None and c.rounds == c.row.rounds
    if c.released is not None and (c.verdict is _V.EXPLAINED or not whole):
        return c.released
    return c


def unique(found: Sequence[PublishedComparison]) -> list[PublishedComparison]:
    """Each number once: at its first publication."""
    first: dict[tuple[object, ...], PublishedComparison] = {}
    for c in found:
        first.setdefault(_identity(c.row.published), c)
    return list(first.values())


def _identity(p: Published) -> tuple[object, ...]:
    """What two publications of one number share.

    The preconditioning table of linear-20 repeats rows of logistic-20 by a copying slip.
    """
    slip = p.table == "precondition-linear" and p.agent.endswith("fglmcts")
    testbed = "logistic-20" if slip else p.testbed
    return (testbed, p.agent, p.lam, p.beta, p.delta, p.gamma, p.metric, p.mean, p.std)


def counted(found: Sequence[PublishedComparison]) -> dict[PublishedVerdict, int]:
    """How many have which verdict."""
    return {v: sum(c.verdict is v for c in found) for v in PublishedVerdict}


def family(comparison: PublishedComparison) -> str:
    """`linear`, `logistic`, `wheel` or `data sets`."""
    name = comparison.row.published.testbed.split("-")[0]
    return name if name in FAMILIES else "data sets"
