"""Does the bonus free cold agents from a wrong arm, or spoil hot ones?"""

from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate
from showdown.book import Book, grid, section
from showdown.effects import Effect, effect
from showdown.families import Family, Judged, Word, tally_sentence
from showdown.figures import scatter
from showdown.question import Question
from showdown.questions.missing import lacking
from showdown.stuck_seeds import Beside, beside, freed_and_bound, share_of, share_text, together
from showdown.wording import MANY, enumeration, interval, testbeds_text

STUDIES = (
    "question-temperature",
    "question-temperature-linear-40",
    "question-temperature-logistic",
)
#: Fewer than this share of the seeds are few.
FEW = 0.1
#: So many times what the median seed loses at the end is the loss of a stuck one.
TIMES = 10.0


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


def bar(r: AgentResult) -> float:
    """Ten times the loss of the median seed at the end; one that lost nothing has none stuck."""
    median = float(np.nanmedian(r.simple_regret)) if len(r.seeds) else 0.0
    return TIMES * median if median > 0 else np.inf


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


def families(book: Book) -> list[Family]:
    """Cold, as the posterior, hot; nothing before something has been run."""
    found = effects(book)
    if not found:
        return []
    heats = [(e, heat(e.changed)) for e in found if e.changed is not None]
    return [
        Family.of("colder than the posterior", [e for e, own in heats if own < 1]),
        Family.of("at the posterior's temperature", [e for e, own in heats if own == 1]),
        Family.of("hotter than the posterior", [e for e, own in heats if own > 1]),
    ]


def shown(found: Sequence[Family]) -> list[Judged]:
    """The largest weights of the coldest draws and of the posterior's, on each testbed."""
    out = []
    for family in found[:2]:
        runs = [m for m in family.members if m.effect.changed is not None]
        for testbed in dict.fromkeys(m.effect.testbed for m in runs):
            own = [m for m in runs if m.effect.testbed == testbed]
            coldest = min(heat(m.effect.changed) for m in own if m.effect.changed)
            out += [m for m in own if m.effect.changed and heat(m.effect.changed) == coldest][-2:]
    return out


def stuck(book: Book) -> list[Beside]:
    """Stuck seeds of all pairs of cold draws, where any seed is stuck, corrected together."""
    found = [
        own
        for r, base in _pairs(book)
        if heat(r) < 1
        for own in beside(_label(r), r, base, bar)
        if own.freed + own.bound or ((share := share_of(base, bar)) and share.value)
    ]
    return together(found)


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
    return [*out, _stuck_said(book), *_lowered(found[0])]


def _stuck_said(book: Book) -> str:
    """Whether the bonus frees cold agents."""
    found = stuck(book)
    where = testbeds_text(list(dict.fromkeys(r.testbed for r, _ in _pairs(book) if heat(r) < 1)))
    if not found:
        return (
            f"**Stuck seeds**: none among the cold draws on {where}, so that there is none to free."
        )
    freed, bound = freed_and_bound(found)
    if not freed and not bound and (few := _few(book)):
        return few
    told = (
        f"**Stuck seeds**: of {len(found)} cold settings on {where} with any, the bonus frees "
        f"seeds in {freed} and binds some in {bound}, by Holm's rule over exact tests."
    )
    if freed and not bound:
        return f"{told} So a bonus frees cold agents."
    if bound and not freed:
        return f"{told} So a bonus does not free cold agents: it binds more of them."
    verdict = "it depends on weight and temperature" if freed else "no such effect is shown"
    return f"{told} Does a bonus free cold agents? Here, {verdict}."


def _few(book: Book) -> str:
    """Which cold seeds are stuck without a bonus, where these are few; else nothing."""
    runs = [r for r in crossed(book) if heat(r) < 1]
    counts = {id(r): round(share.value * len(r.seeds)) for r in runs if (share := share_of(r, bar))}
    plain = [r for r in runs if r.settings["lam"] == 0 and counts.get(id(r))]
    if not plain or any(counts[id(r)] >= FEW * len(r.seeds) for r in plain):
        return ""
    where = enumeration(
        [
            f"{counts[id(r)]} of {len(r.seeds)} on {r.testbed} at temperature {heat(r):g}"
            for r in plain
        ]
    )
    stuck_at = [float(r.settings["lam"]) for r in runs if counts.get(id(r))]
    free = sorted({float(r.settings["lam"]) for r in runs} - set(stuck_at))
    above = [lam for lam in free if lam > max(stuck_at)]
    told = f"With λ ≥ {above[0]:g} none is, too few" if above else "These are too few"
    return f"**Stuck seeds**: few cold seeds are stuck at all: {where}. {told} to show an effect."


def _lowered(cold: Family) -> list[str]:
    """Where a bonus on cold draws lowers the mean regret, by Holm's rule."""
    helped = [m.effect for m in cold.members if m.word() is Word.HELPS]
    if not helped or len(helped) > MANY:
        return []
    told = [f"{e.label} on {e.testbed} by {interval(e.difference)}" for e in helped if e.difference]
    return [f"It does lower the mean regret of cold draws: {enumeration(told)}."]


def more(book: Book) -> list[str]:
    """Shares of stuck seeds by weight and temperature, and a figure of the regrets."""
    runs = crossed(book)
    parts = []
    for testbed in dict.fromkeys(r.testbed for r in runs):
        own = [r for r in runs if r.testbed == testbed]
        shares = {(heat(r), weight(r)): share_of(r, bar) for r in own}
        if any(share is not None and share.value for share in shares.values()):
            weights = list(dict.fromkeys(weight(r) for r in sorted(own, key=_by_weight)))
            rows = [
                [f"{t:g}", *(_short(shares.get((t, w))) for w in weights)]
                for t in dict.fromkeys(heat(r) for r in own)
            ]
            header = ("temperature", *(f"λ = {w}" for w in weights))
            parts.append(f"{testbed}:\n\n{grid(header, rows)}")
    if parts:
        about = "Per cent of the seeds, with 95 % intervals."
        parts = [section("Stuck seeds by weight and temperature", about, *parts)]
    return [*parts, *_figure(book, runs)]


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
        "bonus at the same temperature. In the logistic bandit a gradient reads all 50 arms of all "
        "rounds, so that runs have 3,000 rounds. The paper's two temperatures are 0.37 and 368 on "
        "linear-20, 0.74 and 737 on linear-40, 0.0184 and 18.4 on logistic-20. A seed counts here "
        "as *stuck* whose regret over the last 500 rounds is more than ten times that of the "
        "median seed of its own setting."
    ),
    studies=STUDIES,
    families=families,
    shown=shown,
    says=says,
    more=more,
)
