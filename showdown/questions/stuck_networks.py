"""Why do networks stay on a wrong arm, why does a bonus make it worse, and what frees them?"""

from collections.abc import Mapping, Sequence

from feelgood.engine.results import AgentResult
from showdown.book import Book, grid, section
from showdown.effects import effect, regret_text
from showdown.families import Family
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
from showdown.wording import capital, enumeration
from showdown.yardsticks import LAST, dagger, key_of

STUDIES = ("question-stuck", "question-stuck-filter", "question-stuck-parts")
#: The paper's step size, β and batch on adult.
LR, BETA, BATCH = 0.005, 775.5, 256
#: Chance loses every other round of two arms, but for so much.
TWO_ARMS = 0.01
#: A share of seeds near chance that is worth saying.
MANY = 0.2
#: How the comparison of the longest step ends.
SHORTEST = ", beside the shortest step"
#: How comparisons of steps end that read all rows, as a filter must.
WHOLE = "whole history"
#: How the comparisons of the widest smoothing with none end.
BOTH = ", both arms alike"
#: What could free seeds, too.
UNTRIED = "Not tried: fresh starts, jumps between modes."
#: Families, as they are called.
PLAIN, BONUS, SMOOTHED, ALIKE, OTHERS, BOX = (
    "without a bonus, beside the paper's settings",
    "the bonus, beside none",
    "the smoothed maximum, beside no bonus",
    "both arms alike, beside the best arm alone",
    "the other arm alone, beside no bonus",
    "out of the box, the bonus beside none",
)
#: A pair: what is changed, the run, and what it stands beside.
Pair = tuple[str, AgentResult, AgentResult | None]


class Runs:
    """The study's runs, found by what they are."""

    def __init__(self, book: Book) -> None:
        self.all = book.shelf.of(*STUDIES)
        self.bar: Bar = wrong_arm_bar(book)
        self.stuck_bar: Bar = bar_of(book)
        self.mark = lambda r: dagger(r, book.yardsticks)

    def one(self, agent: str, **own: object) -> AgentResult | None:
        """The run with these settings; None where there is none."""
        fits = (r for r in self.all if r.agent == agent and own.items() <= r.settings.items())
        return next(fits, None)

    def plain(self, **own: object) -> AgentResult | None:
        """`neural-lmcts` at the paper's settings but for these."""
        return self.one("neural-lmcts", **({"lr": LR, "beta": BETA, "batch": BATCH} | own))

    def hard(self, r: AgentResult) -> AgentResult | None:
        """The same bonus on the maximum itself."""
        own = {"beta": BETA, "lam_schedule": "constant"} | {n: r.settings[n] for n in ("b", "lam")}
        return self.one("neural-fglmcts", **own)

    def of(self, agent: str, boxed: bool = False) -> list[AgentResult]:
        """All runs of an agent at the paper's settings or near them, or those out of the box."""
        own = [r for r in self.all if r.agent == agent and _boxed(r) == boxed]
        names = ("lam", "lift", "softness", "beta", "lr")
        return sorted(own, key=lambda r: [_number(r.settings.get(name)) for name in names])


def wrong_arm_bar(book: Book) -> Bar:
    """Halfway from chance to the worse of two arms: a seed that loses more is on the wrong arm.

    Of two arms that are classes one is right in each round, so together they lose all rounds.
    """

    def bar(run: AgentResult) -> float | None:
        own = book.yardsticks.get(key_of(run))
        if own is None or abs(own.uniform / own.rounds - 0.5) > TWO_ARMS:
            return None
        worse = 2.0 * own.uniform - own.fixed
        return 0.5 * (own.uniform + worse) / own.rounds * min(LAST, own.rounds)

    return bar


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _boxed(r: AgentResult) -> bool:
    return isinstance(r.settings["beta"], str)


def weight(r: AgentResult) -> str:
    """`λ = 0.1`, or `λ = 1/√s` of a weight that falls."""
    falls = r.settings.get("lam_schedule") == "sqrt"
    return f"λ = {r.settings['lam']:g}{'/√s' if falls else ''}"


def _hot(r: AgentResult) -> str:
    times = BETA / float(r.settings["beta"])
    return "" if times == 1 else f"temperature × {times:g}"


def _without(runs: "Runs", base: AgentResult | None) -> str:
    """The share of the run beside it, which has no row of its own."""
    share = None if base is None else share_of(base, runs.bar)
    return f" (without: {100 * share.value:.0f} %)" if share else ""


def _step(r: AgentResult) -> str:
    times = float(r.settings["lr"]) / LR
    return "" if times == 1 else f"step × {times:g}"


def pairs(runs: Runs) -> dict[str, list[Pair]]:
    """All pairs of each family that were run."""
    base = runs.plain()
    plain: list[Pair] = []
    for r in runs.of("neural-lmcts"):
        changed = [_hot(r)] if _hot(r) else []
        changed += [_step(r)] if _step(r) else []
        changed += [WHOLE] if r.settings["batch"] == 0 else []
        if changed:
            plain.append((", ".join(changed), r, base))
    steps = [r for r in runs.of("neural-lmcts") if not _hot(r) and r.settings["batch"] == BATCH]
    if len(steps) > 1:
        plain.append((f"{_step(steps[-1])}{SHORTEST}", steps[-1], steps[0]))
    # A Metropolis filter needs the whole history: it stands beside steps that have it, too.
    for r in runs.of("neural-malats"):
        label = ", ".join(filter(None, ["Metropolis filter", _step(r)]))
        whole = runs.plain(batch=0, lr=r.settings["lr"])
        plain.append((f"{label}{_without(runs, whole)}", r, whole))
    bonus: list[Pair] = [
        (", ".join(filter(None, [weight(r), _hot(r)])), r, runs.plain(beta=r.settings["beta"]))
        for r in runs.of("neural-fglmcts")
    ]
    smoothed: list[Pair] = [
        (f"{weight(r)}, softness {r.settings['softness']:g}", r, base)
        for r in runs.of("neural-soft-fglmcts")
    ]
    alike: list[Pair] = [(f"{weight(r)}{BOTH}", r, runs.hard(r)) for r in _softest(runs)]
    others: list[Pair] = [
        (f"λ = {r.settings['lift']:g}, other arm alone", r, base)
        for r in runs.of("neural-parted-fglmcts")
    ]
    box = runs.of("neural-lmcts", boxed=True)
    boxed: list[Pair] = [
        (f"{weight(r)}, out of the box", r, box[0] if box else None)
        for r in runs.of("neural-fglmcts", boxed=True)
    ]
    return {
        **{PLAIN: plain, BONUS: bonus, SMOOTHED: smoothed},
        **{ALIKE: alike, OTHERS: others, BOX: boxed},
    }


def _softest(runs: Runs) -> list[AgentResult]:
    """The bonus on a maximum that is smoothed so widely that all arms share its gradient."""
    soft = runs.of("neural-soft-fglmcts")
    widest = max((float(r.settings["softness"]) for r in soft), default=0.0)
    return [r for r in soft if r.settings["softness"] == widest]


def families(book: Book) -> list[Family]:
    """Regrets of all pairs; nothing before something has been run."""
    runs = Runs(book)
    found = pairs(runs) if runs.all else {}
    return [
        Family.of(name, [effect(label, r, base) for label, r, base in own])
        for name, own in found.items()
        if own
    ]


def judged_seeds(runs: Runs) -> dict[str, list[Beside]]:
    """Seeds on the wrong arm in all pairs, corrected within each family."""
    return {
        name: together(b for label, r, base in own for b in beside(label, r, base, runs.bar))
        for name, own in pairs(runs).items()
    }


# What came out -------------------------------------------------------------------------------


def says(book: Book, found: Sequence[Family]) -> list[str]:
    """What is missing, what the bonus does, and what became of both conjectures."""
    runs, out = Runs(book), lacking(book, STUDIES)
    judged = judged_seeds(runs) if runs.all else {}
    if not any(judged.values()):
        return [*out, "Nothing can be said before these are run."]
    base = runs.plain()
    if base is not None:
        out.append(
            "At the paper's settings without a bonus "
            f"{share_text(share_of(base, runs.bar))} of {len(base.seeds)} seeds are on the wrong "
            f"arm after {base.rounds:,} rounds.{_out_of_the_box(runs)}"
        )
    out.append(f"**The gradient goes to the incumbent**: {_incumbent(runs, judged)}")
    out.append(f"**Unadjusted steps have a wider law**: {_wider(judged[PLAIN])}")
    return out + _freeing(judged)


def _incumbent(runs: Runs, judged: Mapping[str, Sequence[Beside]]) -> str:
    """What becomes of the seeds where the same weight pulls on the best arm, on all, on the other.

    The bonus on the maximum differs from none by its pull on the best arm, and by nothing else.
    """
    best, alike, others = judged[BONUS], judged[ALIKE], judged[OTHERS]
    if not best or not alike:
        return "not run."
    widest = float(alike[0].changed.settings["softness"])
    soft = judged[SMOOTHED]
    both = [b for b in soft if b.changed.settings["softness"] == widest]
    (freed, bound), (_, bound_elsewhere) = freed_and_bound(best), freed_and_bound([*both, *others])
    verdict = "not supported"
    if freed and not bound:
        verdict = "contradicted"
    elif bound and not freed and not bound_elsewhere and all(b.frees for b in alike):
        verdict = "supported"
    told = [
        f"{verdict}. All that the bonus adds is this pull. It {_verbs(best)}.",
        f"The same weight on both arms alike (softness {widest:g}) {_verbs(both)}. Beside the best "
        f"arm alone it frees some in {freed_and_bound(alike)[0]} of {len(alike)}.",
    ]
    told += [f"On the other arm alone it {_verbs(others)}."] if others else []
    told += [_by_chance(runs, b) for b in others]
    narrow = [f"{weight(b.changed)} at {_softness(b)}" for b in soft if b.binds and b not in both]
    if narrow:
        few = enumeration(narrow) if len(narrow) <= 3 else f"{len(narrow)} settings"
        told.append(f"Smoothed less it binds, too: {few}.")
    return " ".join(filter(None, [*told, "Arms share layers: a pull on one moves both."]))


def _by_chance(runs: Runs, b: Beside) -> str:
    """Whether seeds that left the wrong arm play about as chance does."""
    wrong, stuck = (share_of(b.changed, bar) for bar in (runs.bar, runs.stuck_bar))
    if wrong is None or stuck is None or stuck.value - wrong.value < MANY:
        return ""
    seeds = round((stuck.value - wrong.value) * stuck.count)
    return (
        f"But at λ = {b.changed.settings['lift']:g} {seeds} seeds then play about as chance does."
    )


def _softness(b: Beside) -> str:
    return f"softness {b.changed.settings['softness']:g}"


def _verbs(found: Sequence[Beside]) -> str:
    freed, bound = freed_and_bound(found)
    return f"*binds* seeds in {bound} of {len(found)} settings, *frees* some in {freed}"


def _out_of_the_box(runs: Runs) -> str:
    """Stuck seeds at the package's own settings, without a bonus and with it."""
    own = [r for agent in ("neural-lmcts", "neural-fglmcts") for r in runs.of(agent, boxed=True)]
    shares = [share for r in own if (share := share_of(r, runs.bar))]
    if len(shares) != 2:
        return ""
    without, with_it = (round(share.value * share.count) for share in shares)
    return (
        f" Out of the box {without} of {shares[0].count} are, and {with_it} with {weight(own[1])}."
    )


def _wider(found: Sequence[Beside]) -> str:
    """A Metropolis filter takes the excess width away: it would bind seeds.

    That longer steps free some says less: they also move farther.
    """
    filtered = [b for b in found if b.changed.agent == "neural-malats"]
    near = [b for b in filtered if not _step(b.changed)]
    far = [b for b in filtered if _step(b.changed)]
    long = [b for b in found if b.label.endswith(SHORTEST)]
    told = []
    if near:
        told.append(
            f"{_supported(near)} at the paper's step: a Metropolis filter, which takes that width "
            f"away, binds {near[0].bound} of {near[0].seeds} seeds and frees {near[0].freed}."
        )
    frees = bool(long and long[0].frees)
    if far:
        told.append(_far(far, frees))
    elif near and frees and not near[0].binds:
        told.append("Long steps also move farther, and no filter was run with them.")
    return " ".join(told) or "not run."


def _far(found: Sequence[Beside], long_steps_free: bool) -> str:
    """The filter at long steps: whether these free seeds by their width."""
    times = enumeration([_step(b.changed).removeprefix("step × ") for b in found])
    bound, freed = (
        enumeration([str(getattr(b, name)) for b in found]) for name in ("bound", "freed")
    )
    verdict = _supported(found)
    if verdict == "not supported" and sum(b.bound - b.freed for b in found) > 0:
        verdict = "open"
    said = (
        f"{capital(verdict)} at {times} times that step: the filter binds {bound} of "
        f"{found[0].seeds} and frees {freed}."
    )
    if not long_steps_free or any(b.binds for b in found):
        return said
    return f"{said} A small effect is not excluded."


def _supported(found: Sequence[Beside]) -> str:
    """What the filter says of the conjecture that it would bind seeds."""
    freed, bound = freed_and_bound(found)
    if freed and not bound:
        return "contradicted"
    return "supported" if bound and not freed else "not supported"


def _freeing(judged: dict[str, list[Beside]]) -> list[str]:
    """What frees seeds, of all that was tried."""
    found = [b for name, own in judged.items() for b in own if b.frees and name != ALIKE]
    if not found:
        return [f"What frees seeds: nothing that was tried, by Holm's rule. {UNTRIED}"]
    kinds = list(dict.fromkeys(_kind(b) for b in found))
    return [f"What frees seeds: {enumeration(kinds)}. {UNTRIED}"]


def _kind(b: Beside) -> str:
    """What is changed, in words."""
    own = b.changed.settings
    if "softness" in own:
        return "a smoothed maximum"
    if "lift" in own:
        return "a bonus on the other arm alone"
    if b.changed.agent == "neural-malats":
        return "a Metropolis filter"
    if "lam" in own:
        return "a bonus"
    if _hot(b.changed):
        return "hotter draws" if float(own["beta"]) < BETA else "colder draws"
    return "longer steps" if float(own["lr"]) > LR else "other steps"


def more(book: Book) -> list[str]:
    """All settings: seeds on the wrong arm, regrets, and the test beside their twin."""
    runs = Runs(book)
    base = runs.plain()
    rows = [] if base is None else [["the paper's settings, no bonus", *_numbers(runs, base), ""]]
    for own in (judged_seeds(runs) if runs.all else {}).values():
        for b in own:
            # The text or the rows of the filter have these comparisons; the file has all.
            if b.label.endswith((SHORTEST, BOTH, WHOLE)):
                continue
            rows.append([b.label, *_numbers(runs, b.changed), _bold(b)])
    if not rows:
        return []
    header = ("setting", "wrong arm", "stuck", "regret", "freed / bound")
    about = (
        "Brackets hold 95 % intervals. *Stuck*: per cent there [or near "
        "chance](reading.md#stuck-seeds), where they are more. Regrets: means (medians), † does "
        "not beat the best fixed arm. *Freed* seeds are on the wrong arm only without the change, "
        "*bound* or diverged ones only with it. Bold: Holm's rule, exact tests."
    )
    return [section("All settings", about, grid(header, rows))]


def _bold(b: Beside) -> str:
    told = f"{b.freed} / {b.bound}"
    return f"**{told}**" if b.frees or b.binds else told


def _numbers(runs: Runs, r: AgentResult) -> list[str]:
    wrong, stuck = share_of(r, runs.bar), share_of(r, runs.stuck_bar)
    more = stuck is not None and (wrong is None or stuck.value > wrong.value)
    told = f"{100 * stuck.value:.0f}" if stuck is not None and more else ""
    return [share_text(wrong), told, regret_text(r, runs.mark(r))]


QUESTION = Question(
    name="stuck-networks",
    place=32,
    title="Why do networks stay on a wrong arm?",
    asks=(
        "On adult some seeds of the paper's network play the wrong arm to the end, more with a "
        "bonus. Does its gradient go to the arm that looks best already? And do steps that "
        "scatter more than the posterior find a better one? The maximum was smoothed over arms: "
        "*softness* is how far below the best an arm may be and still share the gradient. Seeds "
        "*on the wrong arm* lose, in their last 500 rounds, nearer to what it loses than to chance."
    ),
    studies=STUDIES,
    families=families,
    says=says,
    more=more,
)
