"""Ours beside the published numbers: verdicts from the shelf, counts, and the page of agreement."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.core.lookup import preset_settings
from feelgood.core.numbers import mean_std_count
from feelgood.core.spec import Spec
from feelgood.engine.results import AgentResult
from feelgood.paper.published_numbers import Published, all_published
from feelgood.paper.published_rows import RELEASED, TITLES, PublishedRow, missing, to_row
from feelgood.paper.reasons import holds
from feelgood.paper.reproducing import NOT_YET
from feelgood.report.published_comparisons import (
    MARGIN,
    MARGIN_LEVEL,
    NO_REASON,
    POWER,
    ROW_LEVEL,
    PublishedComparison,
    PublishedVerdict,
    compare_row,
    with_released,
)
from feelgood.report.published_tables import to_csv
from feelgood.stats.false_discovery import benjamini_hochberg
from feelgood.stats.holm import holm
from showdown.book import Book, grid, items, section
from showdown.effects import FEWEST_SEEDS
from showdown.shelf import Shelf
from showdown.shelf import without_bonus as grammar_name

#: Level of the corrected tests: that any is false (Holm), or the share of false ones.
CORRECTED_LEVEL = 0.05
#: Choices that the paper leaves open and that were made so that its numbers come out.
FITTED: tuple[Mapping[str, Any], ...] = (
    {
        "what": "the temperatures",
        "testbed": "linear-* logistic-*",
        "agent": "*lmcts *malats",
    },
    {"what": "5 arms × 8 dimensions of linear-40", "testbed": "linear-40"},
    {"what": "the 20 warm-up steps of MALA", "testbed": "linear-* logistic-*", "agent": "*malats"},
    {
        "what": "5 arms of the main logistic column",
        "testbed": "logistic-20",
        "table": "main other",
    },
    {"what": "one outer arm and its rewards on the wheel", "testbed": "wheel-*"},
)
FAMILIES = ("linear", "logistic", "wheel")
#: Where fewer seeds are all that there can be; the pages say so.
FEW_ALLOWED = ("cifar10",)
#: What stands where nothing is listed.
_NONE = "None."
#: More rows than this are counted, not listed.
MANY = 8
_V = PublishedVerdict


# Verdicts ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def comparisons(shelf: Shelf) -> tuple[PublishedComparison, ...]:
    """One for each of the published numbers, in the paper's order."""
    return tuple(both_readings(shelf, i, one) for i, one in enumerate(all_published()))


def both_readings(shelf: Shelf, i: int, published: Published) -> PublishedComparison:
    """The paper's text and the released code beside one number."""
    row, code = to_row(published), to_row(published, RELEASED)
    ours, theirs = shelf.by_number.get(i), shelf.by_released_number.get(i)
    if theirs is None and ours is not None:
        code, theirs = _without_bonus(shelf, code, ours)
    return with_released(
        _enough(compare_row(row, _absent(row) if ours is None else ours)),
        _enough(compare_row(code, _absent(code) if theirs is None else theirs)),
    )


def _enough(c: PublishedComparison) -> PublishedComparison:
    """The comparison, without its verdict where that would rest on too few seeds of ours."""
    if c.run is None or not c.verdict.tested or c.row.testbed in FEW_ALLOWED:
        return c
    seeds = len(c.run.seeds)
    if seeds >= FEWEST_SEEDS:
        return c
    reason = f"{seeds} seeds of ours are too few: a verdict takes {FEWEST_SEEDS}"
    return dataclasses.replace(c, verdict=_V.UNCERTAIN, reason=reason)


def _absent(row: PublishedRow) -> str:
    return missing(row) or NOT_YET


def _without_bonus(
    shelf: Shelf, code: PublishedRow, ours: AgentResult
) -> tuple[PublishedRow, AgentResult | None]:
    """Networks' Langevin agents with a bonus had none in the released code: ours at λ = 0."""
    plain = None
    if code.published.agent in ("neural-fglmcts", "neural-sfglmcts"):
        plain = shelf.plain(ours)
    if plain is None:
        return code, None
    said = "the released agent has no bonus"
    bare = dataclasses.replace(
        code,
        testbed=plain.testbed,
        agent=plain.agent,
        cannot=None,
        remark=said,
        stands_for="ours at λ = 0",
    )
    return bare, plain


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
    #: Unique ones that were tested; those that differ after each correction for their number.
    tested: int
    differ_holm: int
    differ_bh: int
    #: Unique ones that agree or are explained, after each correction.
    equal_holm: int
    equal_bh: int
    #: Unique ones that agree or are explained and rest on a choice that was fitted to the tables.
    fitted: int


def counts(shelf: Shelf) -> Agreement:
    """The counts behind every sentence about agreement."""
    found = comparisons(shelf)
    once = unique(found)
    tested = [c for c in once if c.verdict.tested]
    differ = [c.verdict is _V.DIFFERS for c in tested]
    equal = [c.verdict in (_V.AGREES, _V.EXPLAINED) for c in tested]
    apart, close = np.array([_chances(c) for c in tested]).reshape(-1, 2).T

    def kept(which: Sequence[bool], p: np.ndarray, correct: Callable[[Any], Any]) -> int:
        return int(np.sum(np.array(which, bool) & (correct(p) <= CORRECTED_LEVEL)))

    good = [c for c, same in zip(tested, equal, strict=True) if same]
    return Agreement(
        published=len(found),
        unique=len(once),
        verdicts=counted(once),
        all_verdicts=counted(found),
        tested=len(tested),
        differ_holm=kept(differ, apart, holm),
        differ_bh=kept(differ, apart, benjamini_hochberg),
        equal_holm=kept(equal, close, holm),
        equal_bh=kept(equal, close, benjamini_hochberg),
        fitted=sum(any(holds(one, c.row.published) for one in FITTED) for c in good),
    )


def _chances(c: PublishedComparison) -> tuple[float, float]:
    """The p-values of a difference and of equality; only for what was tested."""
    deciding = _deciding(c)
    assert deciding.test is not None and deciding.equivalence is not None
    return deciding.test.p, deciding.equivalence.p


def _deciding(c: PublishedComparison) -> PublishedComparison:
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


# Sentences -----------------------------------------------------------------------------------


def share_sentence(found: Sequence[PublishedComparison]) -> str:
    """How many of these have which verdict."""
    tally = counted(found)
    words = {
        _V.AGREES: "agree",
        _V.EXPLAINED: "are explained by the released code",
        _V.DIFFERS: "differ",
    }
    rest = {
        _V.UNCERTAIN: "are too uncertain to tell",
        _V.CANNOT: "cannot be run",
        _V.NOT_RUN: "are not run yet",
    }
    settled = ", ".join(f"{tally[v]} {said}" for v, said in words.items() if tally[v])
    open_ = [f"{tally[v]} {said}" for v, said in rest.items() if tally[v] or v is _V.CANNOT]
    return f"Of {len(found)} published numbers {settled or 'none is settled'}. {', '.join(open_)}."


def _headline(shelf: Shelf) -> str:
    """The counts without repeated publications."""
    told = counts(shelf)
    return (
        f"The paper has {told.published} numbers, {told.unique} without repeated publications. "
        f"{share_sentence(unique(comparisons(shelf)))} After Holm's correction for their number "
        f"{told.equal_holm} agree or are explained, and {told.differ_holm} differ."
    )


def _corrected(told: Agreement) -> str:
    equal = told.verdicts[_V.AGREES] + told.verdicts[_V.EXPLAINED]
    return (
        f"{told.tested} of the {told.unique} were tested. {told.verdicts[_V.DIFFERS]} differ by "
        f"raw tests at level {ROW_LEVEL:g}; {told.differ_holm} after Holm's correction and "
        f"{told.differ_bh} after Benjamini and Hochberg's, at level {CORRECTED_LEVEL:g}. {equal} "
        f"agree or are explained by raw tests at level {MARGIN_LEVEL:g}; {told.equal_holm} and "
        f"{told.equal_bh} after these corrections."
    )


def _fitted(told: Agreement) -> str:
    named = items([f"{one['what']};" for one in FITTED])[:-1] + "."
    equal = told.verdicts[_V.AGREES] + told.verdicts[_V.EXPLAINED]
    return (
        "The paper leaves settings open. These were chosen so that its numbers come out:\n\n"
        f"{named}\n\n{told.fitted} of the {equal} numbers that agree or are explained rest on "
        "such a choice."
    )


def _unsure(found: Sequence[PublishedComparison]) -> str:
    """What the uncertain ones could have seen."""
    shares = [
        _deciding(c).smallest / c.row.published.mean
        for c in found
        if c.verdict is _V.UNCERTAIN and c.row.published.mean > 0
    ]
    shares = [share for share in shares if np.isfinite(share)]
    if not shares:
        return ""
    half = 100.0 * float(np.median(shares))
    few = [c for c in found if c.verdict is _V.UNCERTAIN and _few(c)]
    ours = "Each has enough seeds of ours. "
    if few:
        have = "has" if len(few) == 1 else "have"
        ours = f"{len(few)} of them {have} fewer than {FEWEST_SEEDS} seeds of ours so far. "
    return (
        f"{ours}Others have few seeds or a wide spread on the published side. For half of all a "
        f"difference below {half:.0f} % of the published mean is seen with probability less than "
        f"{POWER:g}."
    )


def _few(c: PublishedComparison) -> bool:
    """Whether the run that the verdict would rest on has too few seeds."""
    run = _deciding(c).run
    return run is not None and len(run.seeds) < FEWEST_SEEDS


def family(comparison: PublishedComparison) -> str:
    """`linear`, `logistic`, `wheel` or `data sets`."""
    name = comparison.row.published.testbed.split("-")[0]
    return name if name in FAMILIES else "data sets"


def _tally(what: str, groups: Mapping[str, Sequence[PublishedComparison]]) -> str:
    """A row per group: how many numbers have which verdict. Verdicts that none has are left out."""
    everything = counted([c for own in groups.values() for c in own])
    used = [v for v, n in everything.items() if n]
    rows = [[name, *(str(counted(own)[v]) for v in used)] for name, own in groups.items() if own]
    return grid((what, *(v.value for v in used)), rows)


# Pages ---------------------------------------------------------------------------------------


def reproduction(book: Book) -> str:
    """Which published numbers could be reproduced? In short, with a link."""
    return section(
        "Which published numbers could be reproduced?",
        f"{_headline(book.shelf)} [Agreement with the paper](agreement.md) has the tables.",
    )


def agreement(book: Book) -> str:
    """The page of agreement with the paper."""
    found = comparisons(book.shelf)
    once, told = unique(found), counts(book.shelf)
    by_family = {f: [c for c in once if family(c) == f] for f in (*FAMILIES, "data sets")}
    by_table = {f"`{t}`": [c for c in found if c.row.published.table == t] for t in TITLES}
    parts = [
        "# Agreement with the paper",
        f"{_headline(book.shelf)} A number *agrees* where both means are equal within "
        f"±{100 * MARGIN:g} %, by two one-sided tests at level {MARGIN_LEVEL:g}. It is *explained* "
        "where that holds for [the released code](../released.md) instead of the paper's text. "
        "[How to read the verdicts](../verdicts.md) has the rest. No number is left out because "
        "of how it came out. [agreement.csv](agreement.csv) has the evidence for each.",
        _tally("family", by_family),
        section("Corrected for the number of tests", _corrected(told)),
        section("Choices that were fitted to the tables", _fitted(told)),
        section("What the released code explains", items(_explained(once))),
        section("The λ tables of the logistic bandits", in_their_environment(book.shelf)),
        section("What is too uncertain", _unsure(once)),
        _section_of("Different for no known reason", unexplained(once)),
        section("What waits", _waiting(once)),
        section(
            "Table by table",
            "Repeated numbers count in each table.",
            _tally("table", {**by_table, "all": found}),
        ),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section_of(title: str, text: str) -> str:
    """A section, or nothing where there is nothing to list."""
    return "" if text == _NONE else section(title, text)


def without_bonus(shelf: Shelf) -> list[PublishedComparison]:
    """The logistic rows at the smallest λ beside the released code without a bonus.

    Their bonus moves the scores by λ/(2η) = 0.0005. It is no verdict: with a bonus nothing was run.
    """
    plain = {}
    for k in shelf.kept:
        r = k.result
        if (
            r.testbed.startswith("released-logistic")
            and not r.testbed_settings.get("arms", 50) < 50
        ):
            plain[r.testbed, r.agent, f"{r.settings.get('beta', 0.0):.4g}"] = r
    out = []
    for published in all_published():
        if not published.table.startswith("lambda-logistic") or published.lam != 0.01:
            continue
        row = to_row(published, RELEASED)
        prefix = "released-" if row.agent.startswith("released-") else ""
        agent = prefix + (grammar_name(row.agent.removeprefix(prefix)) or "")
        spec = Spec(arms=50, dim=int(row.testbed.split("-")[-1]), shared=True)
        beta = preset_settings(row.preset, agent, row.testbed, spec, row.rounds)["beta"]
        ours = plain.get((row.testbed, agent, f"{beta:.4g}"))
        if ours is not None:
            out.append(compare_row(row, ours))
    return out


def in_their_environment(shelf: Shelf) -> str:
    """What became of the λ tables of logistic bandits where θ* is not scaled."""
    own = [c for c in comparisons(shelf) if c.row.published.table.startswith("lambda-logistic")]
    run = [c.released for c in own if c.released is not None and c.released.test is not None]
    there, few = [c for c in run if not _few(c)], [c for c in run if _few(c)]
    said = ["They belong to an environment whose θ* is not scaled."]
    if there:
        tally = counted(there)
        said.append(
            f"Of {len(there)} numbers that were run there {tally[_V.EXPLAINED]} agree, "
            f"{tally[_V.UNCERTAIN]} are too uncertain to tell and {tally[_V.DIFFERS]} differ."
        )
    if few:
        apart = sum(c.test is not None and c.test.p < ROW_LEVEL for c in few)
        said.append(
            f"{len(few)} were run there with fewer than {FEWEST_SEEDS} seeds, too few for a "
            f"verdict: a test at level {ROW_LEVEL} tells {apart} of them apart from the published."
        )
    if len(run) < len(own):
        said.append(f"{len(own) - len(run)} wait for an accelerator. {_without_bonus_said(shelf)}")
    return " ".join(said).strip()


def _without_bonus_said(shelf: Shelf) -> str:
    """How many of these are equal, open and different, of those with enough seeds."""
    found = [c for c in without_bonus(shelf) if not _few(c)]
    if not found:
        return ""
    tally = counted(found)
    worst = max(found, key=_gap)
    return (
        "At λ = 0.01 the bonus moves scores by 0.0005: agents without one tell what to expect. Of "
        f"these {len(found)} numbers {tally[_V.EXPLAINED]} equal the released code without a "
        f"bonus, {tally[_V.UNCERTAIN]} are too uncertain, {tally[_V.DIFFERS]} differ. The furthest "
        f"is {_beside(worst)}. This is no verdict."
    )


def agreement_csv(book: Book) -> str:
    """Every published number with its verdict and evidence."""
    return to_csv(comparisons(book.shelf), "Agreement")


def _explained(found: Sequence[PublishedComparison]) -> list[str]:
    """Per family how many, and the one with the most to explain, with its numbers."""
    lines = []
    for name in (*FAMILIES, "data sets"):
        own = [c for c in found if family(c) == name and c.verdict is _V.EXPLAINED]
        if not own:
            continue
        told = max(own, key=_gap)
        said = told.released.row.remark if told.released is not None else None
        note = f" Note: {said}." if said else ""
        lines.append(f"{name}: {len(own)}. For example: {_beside(told)}; {told.reason}.{note}")
    return lines or ["Nothing yet."]


def _gap(c: PublishedComparison) -> float:
    """By which factor our own mean and the published one differ."""
    if c.ours is None or not c.ours.count or min(c.ours.mean, c.row.published.mean) <= 0:
        return 0.0
    return abs(float(np.log(c.ours.mean / c.row.published.mean)))


def _beside(c: PublishedComparison) -> str:
    theirs = c.row.published
    said = (
        f"{c.row.label} on {theirs.testbed} (`{theirs.table}`): "
        f"published {mean_std_count(theirs.mean, theirs.std, theirs.seeds)}"
    )
    if c.ours is None:
        return said
    return f"{said}, ours {mean_std_count(c.ours.mean, c.ours.std, c.ours.count)}"


def unexplained(found: Sequence[PublishedComparison]) -> str:
    """The rows that differ without a reason; the furthest ones where they are many."""
    own = [c for c in found if c.verdict is _V.DIFFERS and NO_REASON in c.reason]
    shown = sorted(own, key=_gap, reverse=True)[:MANY]
    lines = [f"{_beside(c)}." for c in shown]
    if len(own) > MANY:
        lines.append(f"And {len(own) - MANY} more, in agreement.csv.")
    return items(lines) or _NONE


def _waiting(found: Sequence[PublishedComparison]) -> str:
    """What has not been run for numbers that are not settled."""
    idle = collections.Counter(c.row.published.testbed for c in found if c.verdict is _V.NOT_RUN)
    code = collections.Counter(
        family(c)
        for c in found
        if c.verdict in (_V.DIFFERS, _V.UNCERTAIN)
        and c.released is not None
        and c.released.verdict is _V.NOT_RUN
    )
    lines = []
    if idle:
        named = ", ".join(f"{name} {n}" for name, n in idle.items())
        lines.append(f"Not run yet as the text or as the code has it: {named}.")
    if code:
        named = ", ".join(f"{name} {n}" for name, n in code.items())
        lines.append(
            "Open or different, and the released code not run yet, most of it for want of an "
            f"accelerator: {named}."
        )
    return items(lines) or "Nothing."
