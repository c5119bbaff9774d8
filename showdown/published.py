"""Ours beside the published numbers: the page of agreement, its sentences and its table."""

import collections
import csv
import io
from collections.abc import Mapping, Sequence

import numpy as np

from feelgood.core.lookup import preset_settings
from feelgood.core.numbers import mean_std_count
from feelgood.core.spec import Spec
from feelgood.paper.published_numbers import all_published
from feelgood.paper.published_rows import RELEASED, to_row
from feelgood.report.published_comparisons import (
    MARGIN,
    MARGIN_LEVEL,
    NO_REASON,
    POWER,
    ROW_LEVEL,
    PublishedComparison,
    PublishedVerdict,
    compare_row,
)
from feelgood.report.published_tables import to_csv
from showdown.book import Book, grid, items, section
from showdown.effects import FEWEST_SEEDS
from showdown.judging import (
    CORRECTED_LEVEL,
    ENVIRONMENT,
    FAMILIES,
    NO_BONUS,
    Agreement,
    at_no_bonus,
    comparisons,
    counted,
    counts,
    deciding,
    enough,
    family,
    fitted_choices,
    unique,
)
from showdown.shelf import Shelf
from showdown.shelf import without_bonus as grammar_name
from showdown.wording import capital

#: What stands where nothing is listed.
_NONE = "None."
#: More rows than this are counted, not listed.
MANY = 8
_V = PublishedVerdict


# Sentences -----------------------------------------------------------------------------------


#: What several numbers do, and one.
WORDS = {
    _V.AGREES: ("agree", "agrees"),
    _V.EXPLAINED: ("are explained", "is explained"),
    _V.DIFFERS: ("differ", "differs"),
    _V.UNCERTAIN: ("are too uncertain to tell", "is too uncertain to tell"),
    _V.CANNOT: ("cannot be run", "cannot be run"),
    _V.NOT_RUN: ("are not run yet", "is not run yet"),
}
_SETTLED = (_V.AGREES, _V.EXPLAINED, _V.DIFFERS)


def _listed(
    tally: Mapping[PublishedVerdict, int],
    which: Sequence[PublishedVerdict],
    more: Mapping[PublishedVerdict, str] = {},
) -> str:
    """`3 agree, 2 are explained and 1 differs` of these verdicts, with what is said besides."""
    *most, last = [f"{tally[v]} {WORDS[v][tally[v] == 1]}{more.get(v, '')}" for v in which]
    return f"{', '.join(most)} and {last}"


def finding(told: Agreement) -> str:
    """How many agree: corrected, one by one, and how many of them rest on a fitted choice.

    The README says the same.
    """
    more = {
        _V.AGREES: f" with ours within {100 * MARGIN:g} %",
        _V.EXPLAINED: " by the released code",
    }
    used = [v for v in _V if told.verdicts[v] or v is not _V.CANNOT]
    wheel = ""
    if told.wheel_holm:
        wheel = f"{told.wheel_holm} of these are the wheel's, which no right agent can have. "
    return (
        f"After Holm's correction for {told.tests} tests, of {told.unique} published numbers "
        f"{_listed(told.holm, _SETTLED, more)}. {wheel}Without correction "
        f"{_listed(told.verdicts, used)}. {told.fitted_holm} of the {_equal(told.holm)} and "
        f"{told.fitted} of the {_equal(told.verdicts)} that agree or are explained rest on "
        f"choices fitted to the tables{_tried(told)}."
    )


def _tried(told: Agreement) -> str:
    """How many explained numbers stand in an environment that no source states."""
    own = told.by_choice[ENVIRONMENT]
    return f", {own} on a logistic environment found by trying" if own else ""


def _equal(tally: Mapping[PublishedVerdict, int]) -> int:
    return tally[_V.AGREES] + tally[_V.EXPLAINED]


def _opening(told: Agreement) -> str:
    """How many numbers there are, how many have a verdict, and how many are settled."""
    every, settled = told.all_verdicts, sum(told.holm[v] for v in _SETTLED)
    numbers = {
        "published": told.published,
        "with a verdict": told.published - every[_V.NOT_RUN],
        _V.NOT_RUN.value: every[_V.NOT_RUN],
        _V.CANNOT.value: every[_V.CANNOT],
        "published, each number once": told.unique,
        "settled after Holm's correction": settled,
        "not settled after it": told.unique - settled,
    }
    return grid(("numbers", "how many"), [[what, str(n)] for what, n in numbers.items()])


def _corrected(told: Agreement) -> str:
    return (
        f"{told.tested} of the {told.unique} were tested, {told.twice} of them as the text and as "
        f"the released code have it: {told.tests} tests of a difference. As many are of being "
        "equal; each kind is corrected by itself. Raw tests of a difference are made at level "
        f"{ROW_LEVEL:g}, all others at level {CORRECTED_LEVEL:g}. After Benjamini and Hochberg's "
        f"correction {told.bh[_V.DIFFERS]} differ and {_equal(told.bh)} agree or are explained. "
        f"Numbers with fewer than {FEWEST_SEEDS} seeds of ours are not tested, but for CIFAR-10's, "
        "which have 5."
    )


def _fitted(told: Agreement) -> str:
    named = items([f"{one}: {n};" for one, n in told.by_choice.items()])[:-1] + "."
    return (
        "The paper leaves settings open. These were chosen so that its numbers come out. So many "
        f"of the {_equal(told.verdicts)} rest on each, and some on several:\n\n{named}\n\n"
        "The released file scales all contexts of a round together instead (`scaling = matrix`). "
        "The column `fitted` of agreement.csv names the choices for each number."
    )


def _differing(found: Sequence[PublishedComparison]) -> str:
    """What the released code says of the numbers that differ without correction."""
    own = [c for c in found if c.verdict is _V.DIFFERS]
    tally = collections.Counter(map(_beside_code, own))
    rows = [[why, str(tally[why])] for why in _BESIDE_CODE if tally[why]]
    if not own:
        return _NONE
    columns = ("what is known of those that differ without correction", "numbers")
    return grid(columns, [*rows, ["all", str(len(own))]])


#: What is known of a number that differs, beside the released code.
_BESIDE_CODE = (
    "the wheel's: no right agent can have them",
    "the released code's run is not told apart from them",
    "the released code's run has too few seeds",
    "the released code's run differs, too",
    "the released code has not been run",
    "the released code cannot be run",
)


def _beside_code(c: PublishedComparison) -> str:
    wheel, apart, few, differs, not_run, cannot = _BESIDE_CODE
    code = c.released
    if family(c) == "wheel":
        return wheel
    if code is None or code.verdict is _V.NOT_RUN:
        return not_run
    if code.verdict is _V.CANNOT:
        return cannot
    if code.verdict is _V.DIFFERS:
        return differs
    return few if code.few else apart


def _unsure(found: Sequence[PublishedComparison]) -> str:
    """What the uncertain ones could have seen."""
    open_ = [c for c in found if c.verdict is _V.UNCERTAIN]
    few = [c for c in open_ if deciding(c).few]
    said = []
    if few:
        have = "has" if len(few) == 1 else "have"
        said.append(f"{len(few)} of {len(open_)} {have} fewer than {FEWEST_SEEDS} seeds of ours.")
    shares = [
        deciding(c).smallest / c.row.published.mean
        for c in open_
        if not deciding(c).few and c.row.published.mean > 0
    ]
    shares = [share for share in shares if np.isfinite(share)]
    if shares:
        half = 100.0 * float(np.median(shares))
        odds = {0.8: "once in five times"}[POWER]
        said.append(
            f"{'The others' if few else 'They'} have few seeds or a wide spread on the published "
            f"side. For half of them, we would miss a difference of {half:.0f} % more than {odds}."
        )
    return " ".join(said)


def _tally(what: str, groups: Mapping[str, Sequence[PublishedComparison]]) -> str:
    """A row per group: how many numbers have which verdict. Verdicts that none has are left out."""
    everything = counted([c for own in groups.values() for c in own])
    used = [v for v, n in everything.items() if n]
    rows = [[name, *(str(counted(own)[v]) for v in used)] for name, own in groups.items() if own]
    return grid((what, *(v.value for v in used)), rows)


# Pages ---------------------------------------------------------------------------------------


def agreement(book: Book) -> str:
    """The page of agreement with the paper."""
    found = comparisons(book.shelf)
    once, told = unique(found), counts(book.shelf)
    by_family = {f: [c for c in once if family(c) == f] for f in (*FAMILIES, "data sets")}
    parts = [
        "# Agreement with the paper",
        finding(told),
        _opening(told),
        "A number *agrees* where both means are equal within "
        f"±{100 * MARGIN:g} %, by two one-sided tests at level {MARGIN_LEVEL:g}. It is *explained* "
        "where that holds for [the released code](../released.md) instead of the paper's text. "
        "No number is left out because of how it came out. [The rest](../verdicts.md). "
        "[agreement.csv](agreement.csv) has the evidence for each.",
        _tally("family", {**by_family, "each number once": once, "all": found}),
        section("Corrected for the number of tests", _corrected(told)),
        section("Choices that were fitted to the tables", _fitted(told)),
        section("What the released code explains", items(_explained(once))),
        _section_of("The numbers that differ", _differing(once)),
        _section_of("The wheel", _wheel(once)),
        _section_of("Networks whose bonus was never on", no_bonus_said(book.shelf)),
        section("The λ tables of the logistic bandits", in_their_environment(book.shelf)),
        section("What is too uncertain", _unsure(once)),
        _section_of("Different for no known reason", unexplained(once)),
        section("What waits", _waiting(once)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _section_of(title: str, text: str) -> str:
    """A section, or nothing where there is nothing to list."""
    return "" if text == _NONE else section(title, text)


def _wheel(found: Sequence[PublishedComparison]) -> str:
    """What the wheel's numbers are, beside which no right agent can stand."""
    own = [c for c in found if family(c) == "wheel" and c.verdict.tested]
    if not own:
        return _NONE
    fits = sum(c.released is not None and c.released.verdict is _V.AGREES for c in own)
    return (
        "One outer arm for ever, in a world with rewards (0.15, 0.1, 1), has "
        f"{fits} of {len(own)} numbers within {100 * MARGIN:g} %. It is no agent of the released "
        "code, and the released wheel did not make this table. So nothing is explained by it."
    )


def no_bonus_rows(shelf: Shelf) -> list[PublishedComparison]:
    """FG- and SFG-LMCTS of networks beside our agent without a bonus, where that was run."""
    out = []
    for i, published in enumerate(all_published()):
        row = to_row(published, RELEASED)
        bare, plain = at_no_bonus(shelf, row, shelf.by_number.get(i))
        if plain is not None:
            out.append(enough(compare_row(bare, plain)))
    return out


def no_bonus_said(shelf: Shelf) -> str:
    """How many of these rows are equal to ours without a bonus."""
    found = [c for c in no_bonus_rows(shelf) if not c.few]
    if not found:
        return _NONE
    total = sum(p.agent in NO_BONUS for p in all_published())
    tally = counted(found)
    apart = dict.fromkeys(c.row.testbed for c in found if c.verdict is _V.DIFFERS)
    where = f" ({', '.join(apart)})" if apart else ""
    return (
        "The released code never switches the bonus of FG- and SFG-LMCTS on. So "
        f"{len(found)} of their {total} rows stand beside our agent without a bonus, too. "
        f"{tally[_V.EXPLAINED]} are equal within {100 * MARGIN:g} %, {tally[_V.UNCERTAIN]} are too "
        f"uncertain to tell and {tally[_V.DIFFERS]} differ{where}. The other {total - len(found)} "
        f"have fewer than {FEWEST_SEEDS} seeds, or none."
    )


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
            out.append(enough(compare_row(row, ours)))
    return out


def in_their_environment(shelf: Shelf) -> str:
    """What became of the λ tables of logistic bandits where θ* is not scaled."""
    own = [c for c in comparisons(shelf) if c.row.published.table.startswith("lambda-logistic")]
    run = [c.released for c in own if c.released is not None and c.released.test is not None]
    there, few = [c for c in run if not c.few], [c for c in run if c.few]
    said = [
        "They go with contexts of length 1, as in the text, and an unscaled θ*, as in the code. "
        "This pair was found by trying."
    ]
    if there:
        tally = counted(there)
        said.append(
            f"Of {len(there)} numbers that were run there {tally[_V.EXPLAINED]} agree, "
            f"{tally[_V.UNCERTAIN]} are too uncertain to tell and {tally[_V.DIFFERS]} differ."
        )
    if few:
        said.append(
            f"{len(few)} were run there with fewer than {FEWEST_SEEDS} seeds, too few for a "
            "verdict."
        )
    if len(run) < len(own):
        said.append(f"{len(own) - len(run)} have not been run. {_without_bonus_said(shelf)}")
    return " ".join(said).strip()


def _without_bonus_said(shelf: Shelf) -> str:
    """How many of these are equal, open and different, of those with enough seeds."""
    found = [c for c in without_bonus(shelf) if not c.few]
    if not found:
        return ""
    tally = counted(found)
    return (
        "At λ = 0.01 the bonus moves scores by 0.0005: agents without one tell what to expect. Of "
        f"these {len(found)} numbers {tally[_V.EXPLAINED]} equal the released code without a "
        f"bonus, {tally[_V.UNCERTAIN]} are too uncertain and {tally[_V.DIFFERS]} differ."
    )


def agreement_csv(book: Book) -> str:
    """Every published number with its verdict and evidence, and the fitted choices in it."""
    found = comparisons(book.shelf)
    choices = ["fitted", *("; ".join(fitted_choices(c)) for c in found)]
    rows = csv.reader(io.StringIO(to_csv(found, "Agreement")))
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [*row, own] for row, own in zip(rows, choices, strict=True)
    )
    return out.getvalue()


def _explained(found: Sequence[PublishedComparison]) -> list[str]:
    """Per family how many, and the one with the most to explain, with its numbers."""
    lines = []
    for name in (*FAMILIES, "data sets"):
        own = [c for c in found if family(c) == name and c.verdict is _V.EXPLAINED]
        if not own:
            continue
        told = max(own, key=_gap)
        lines.append(f"{name}: {len(own)}, for example {_beside(told)}. {capital(told.reason)}.")
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
            f"Not settled, because the released code has not been run: {named}. Most needs a GPU."
        )
    return items(lines) or "Nothing."
