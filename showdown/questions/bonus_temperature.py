"""Does the bonus free cold agents from a wrong arm, or spoil hot ones?"""

from collections.abc import Mapping, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.holm import holm
from feelgood.stats.intervals import Estimate
from feelgood.stats.studentised import StudentisedMean, studentised
from showdown.book import Book, grid, section
from showdown.effects import Effect, effect
from showdown.families import ALPHA, Family, Word, tally_sentence
from showdown.figures import scatter
from showdown.question import Question
from showdown.questions.missing import lacking
from showdown.stuck_seeds import (
    Bar,
    Beside,
    bar_of,
    beside,
    freed_and_bound,
    share_of,
    share_text,
    together,
)
from showdown.wording import MANY, count, enumeration, interval, number
from showdown.yardsticks import LAST

STUDIES = (
    "question-temperature",
    "question-temperature-linear-40",
    "question-temperature-logistic",
)
#: Families, as they are called: of regrets and of stuck seeds alike.
FAMILIES = COLD, POSTERIOR, HOT = (
    "colder than the posterior",
    "at the posterior's temperature",
    "hotter than the posterior",
)


def crossed(book: Book) -> list[AgentResult]:
    """All runs, by testbed, temperature and weight."""
    return sorted(
        book.shelf.of(*STUDIES),
        key=lambda r: (r.testbed, heat(r), r.settings["lam_schedule"] == "sqrt", r.settings["lam"]),
    )


def heat(r: AgentResult) -> float:
    """1 is the posterior's, less is colder."""
    return float(r.settings["temperature"])


def weight(r: AgentResult) -> str:
    """`0.1`, or `1/√s` of a weight that falls."""
    lam = f"{r.settings['lam']:g}"
    return f"{lam}/√s" if r.settings["lam_schedule"] == "sqrt" and r.settings["lam"] else lam


def _pairs(book: Book) -> list[tuple[AgentResult, AgentResult]]:
    """Each weight beside none, at the same temperature."""
    runs = crossed(book)
    plain = {(r.testbed, r.rounds, heat(r)): r for r in runs if r.settings["lam"] == 0}
    own = [(r, plain.get((r.testbed, r.rounds, heat(r)))) for r in runs if r.settings["lam"] > 0]
    return [(r, base) for r, base in own if base is not None]


def _label(r: AgentResult) -> str:
    return f"λ = {weight(r)}, temperature {heat(r):g}"


def effects(book: Book) -> list[Effect]:
    """Regret of all pairs."""
    return [effect(_label(r), r, base) for r, base in _pairs(book)]


def _family(r: AgentResult) -> str:
    return COLD if heat(r) < 1 else POSTERIOR if heat(r) == 1 else HOT


def families(book: Book) -> list[Family]:
    """Cold, as the posterior, hot; nothing before something has been run."""
    found = effects(book)
    if not found:
        return []
    named = [(e, _family(e.changed)) for e in found if e.changed is not None]
    return [Family.of(name, [e for e, own in named if own == name]) for name in FAMILIES]


def stuck(book: Book) -> dict[str, list[Beside]]:
    """Stuck seeds of all pairs, also where none is stuck; corrected within each family."""
    bar = bar_of(book)
    found = [b for r, base in _pairs(book) for b in beside(_label(r), r, base, bar)]
    return {n: together(b for b in found if _family(b.changed) == n) for n in FAMILIES}


# What came out -------------------------------------------------------------------------------


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """Counts of regret, then what became of stuck seeds; what is missing comes first."""
    out = lacking(book, STUDIES)
    if not found:
        return [*out, "Nothing can be said before these are run."]
    subjects = (
        "A bonus on draws colder than the posterior",
        "At its temperature",
        "On hotter draws",
    )
    out += [tally_sentence(s, f) for s, f in zip(subjects, found, strict=True) if f.members]
    judged = stuck(book)
    out += [*_stuck_said(judged[COLD]), *_other_heats(judged)]
    return [*out, *_slow_said(judged), *_lowered(found[0])]


def _stuck_said(cold: Sequence[Beside]) -> list[str]:
    """Whether the bonus frees cold agents."""
    if not cold:
        return []
    freed, bound = freed_and_bound(cold)
    verdict = "no such effect is shown"
    if freed or bound:
        verdict = "it frees cold agents" if freed else "more of them count as stuck with it"
    if freed and bound:
        verdict = "its effect depends on weight and temperature"
    told = f"**Stuck seeds**: of {len(cold)} cold settings the bonus {_tally(cold)}"
    told = f"{told} (Holm, exact tests)."
    changed = [b for b in cold if b.frees or b.binds]
    if 0 < len(changed) <= MANY:
        named = [f"{b.before} to {b.after} ({b.label}, {b.changed.testbed})" for b in changed]
        told += f" Of {cold[0].seeds} seeds, without to with it: {'. '.join(named)}."
    return [f"{told} So {verdict}.{too_few(cold)}"]


def too_few(cold: Sequence[Beside]) -> str:
    """That so few are stuck without the bonus that none could be shown to be freed."""
    most = max((b.before for b in cold), default=0)
    if not cold or 2.0 ** (1 - most) <= ALPHA:
        return ""
    return f" Without the bonus at most {most} of {cold[0].seeds} are stuck: too few to free any."


def _tally(found: Sequence[Beside]) -> str:
    """How many settings free and bind seeds."""
    freed, bound = freed_and_bound(found)
    return f"frees seeds in {freed} and binds some in {bound}"


def _other_heats(judged: Mapping[str, Sequence[Beside]]) -> list[str]:
    """The same of draws that are not cold."""
    return [f"Of {len(judged[n])} {n} it {_tally(judged[n])}." for n in FAMILIES[1:] if judged[n]]


def _lowered(cold: Family) -> list[str]:
    """Where a bonus on cold draws lowers the mean regret, by Holm's rule."""
    helped = [m.effect for m in cold.members if m.word() is Word.HELPS]
    if not helped or len(helped) > MANY:
        return []
    told = [f"{e.label} on {e.testbed}: {interval(e.difference)}." for e in helped if e.difference]
    return [
        f"In {len(helped)} of {cold.tested} settings it lowers the mean regret of cold draws. "
        f"{' '.join(told)}"
    ]


def more(book: Book) -> list[str]:
    """Stuck seeds by weight and temperature, whether they are slow, and a figure of regrets."""
    runs, judged = crossed(book), stuck(book)
    tests = {id(b.changed): b for own in judged.values() for b in own}
    bar = bar_of(book)
    beds = [[r for r in runs if r.testbed == t] for t in dict.fromkeys(r.testbed for r in runs)]
    told = [_shares(own, tests, bar) for own in beds if all(share_of(r, bar) for r in own)]
    parts = [section("Stuck seeds by weight and temperature", SHARES, *told)] if told else []
    return [*parts, *_slow_table(judged, bar), *_figure(book, runs)]


SHARES = (
    "Per cent of the seeds, with 95 % intervals, then how many the bonus frees / binds. Bold: by "
    "Holm's rule."
)


def _shares(own: Sequence[AgentResult], tests: Mapping[int, Beside], bar: Bar) -> str:
    """One testbed: a table, or a sentence where no seed is stuck."""
    bed = own[0].testbed
    found = {(heat(r), weight(r)): r for r in own}
    shares = {place: share_of(r, bar) for place, r in found.items()}
    if len({_short(share) for share in shares.values()}) == 1:
        worst = max(float(np.nanmax(r.simple_regret)) for r in own)
        return (
            f"{bed}: {_short(share_of(own[0], bar))} in each of {count(len(own), 'setting')}. One "
            f"seed loses at most {number(worst)}; stuck is from {number(bar(own[0]) or 0.0)} on."
        )
    weights = list(dict.fromkeys(weight(r) for r in sorted(own, key=_by_weight)))
    rows = [
        [f"{t:g}", *(_cell(found.get((t, w)), tests, bar) for w in weights)]
        for t in dict.fromkeys(heat(r) for r in own)
    ]
    return f"{bed}:\n\n{grid(('temperature', *(f'λ = {w}' for w in weights)), rows)}"


def _cell(r: AgentResult | None, tests: Mapping[int, Beside], bar: Bar) -> str:
    if r is None:
        return "–"
    text, test = _short(share_of(r, bar)), tests.get(id(r))
    if test is None or not test.freed + test.bound:
        return text
    text = f"{text}, {test.freed} / {test.bound}"
    return f"**{text}**" if test.frees or test.binds else text


# Stuck, or slow ------------------------------------------------------------------------------


def late_change(r: AgentResult) -> StudentisedMean:
    """What the last 500 rounds cost beyond the 500 before them, paired by seed."""
    half = min(LAST, r.rounds // 2)
    earlier = [np.interp(r.rounds - 2 * half, r.curve_rounds, seed) for seed in r.curve]
    before = r.final_regret - r.simple_regret - np.array(earlier)
    return studentised(r.simple_regret - before)


def _bound(judged: Mapping[str, Sequence[Beside]]) -> list[Beside]:
    return [b for own in judged.values() for b in own if b.binds]


def _slow_said(judged: Mapping[str, Sequence[Beside]]) -> list[str]:
    """Whether agents with more stuck seeds still learn when the run ends."""
    own = _bound(judged)
    if not own:
        return []
    runs = [b.changed for b in own] + [b.base for b in own]
    changes = [late_change(r) for r in runs]
    corrected = holm(np.array([c.p for c in changes]))
    falls = [c.value < 0 and p <= ALPHA for c, p in zip(changes, corrected, strict=True)]
    with_it, without = sum(falls[: len(own)]), sum(falls[len(own) :])
    return [
        f"**Stuck, or slow**: where the bonus binds seeds, the loss still falls at the end in "
        f"{with_it} of {count(len(own), 'setting')}, and without it in {without} (Holm). "
        + ("So these runs are too short to tell a stuck seed from a slow one." if with_it else "")
    ]


def _slow_table(judged: Mapping[str, Sequence[Beside]], bar: Bar) -> list[str]:
    """The last rounds of all settings that bind seeds, with and without the bonus."""
    rows = [
        [
            f"{b.label}, {b.changed.testbed}",
            f"{bar(b.changed):.1f}",
            *_late(b.changed),
            *_late(b.base),
        ]
        for b in _bound(judged)
    ]
    header = ("setting", "stuck from", "loss", "change", "loss without", "change without")
    about = (
        "Mean loss over the last 500 rounds, and the range of the middle 80 % of the seeds; its "
        "change against the 500 rounds before, with 95 % intervals. Where *stuck from* lies inside "
        "the range, no gap parts stuck seeds from the others."
    )
    return [section("Stuck, or slow?", about, grid(header, rows))] if rows else []


def _late(r: AgentResult) -> list[str]:
    low, high = np.nanquantile(r.simple_regret, (0.1, 0.9))
    mean = float(np.nanmean(r.simple_regret))
    return [f"{mean:.1f} ({low:.1f} to {high:.1f})", interval(late_change(r))]


def _by_weight(r: AgentResult) -> tuple[bool, float]:
    return r.settings["lam_schedule"] == "sqrt", float(r.settings["lam"])


def _short(share: Estimate | None) -> str:
    return share_text(share).replace(" %", "")


def _figure(book: Book, runs: Sequence[AgentResult]) -> list[str]:
    own = [r for r in runs if r.testbed == "linear-20"]
    if not own:
        return []
    names = enumeration(list(dict.fromkeys(weight(r) for r in sorted(own, key=_by_weight))))
    caption = (
        f"`fglmcts` on linear-20: mean final regret over the temperature of its draws, for λ = "
        f"{names}. 95 % intervals, {max(len(r.seeds) for r in own)} seeds."
    )
    points = [(f"λ = {weight(r)}", heat(r), r) for r in own]
    axis = "temperature, 1 is the posterior's, logarithmic"
    drawn = book.figure("bonus-temperature", caption, lambda: scatter(points, axis, connect=True))
    return [section("Figure", drawn)]


QUESTION = Question(
    name="bonus-temperature",
    place=85,
    title="Does the bonus free cold agents?",
    asks=(
        "Cold draws scatter less than the posterior, and some seeds then stay with a wrong belief. "
        "`fglmcts` at every temperature with every weight of the bonus, beside itself without a "
        "bonus at the same temperature. Runs have 10,000 rounds, but 3,000 on logistic-20. The "
        "paper's two temperatures are 0.37 and 368 on linear-20, 0.74 and 737 on linear-40, "
        "0.0184 and 18.4 on logistic-20. "
        "[Stuck seeds](reading.md#stuck-seeds) lose over the last 500 rounds more than half of "
        "what chance loses."
    ),
    studies=STUDIES,
    families=families,
    says=says,
    more=more,
)
