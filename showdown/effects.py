"""Does one thing help beside another? From paired differences to words, and no further.

A word is said only if the interval allows it. Regret is a loss: a negative difference is a gain.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

import numpy as np

from feelgood.core.errors import FeelgoodError
from feelgood.engine.results import AgentResult
from feelgood.report.ranking import common_seeds, compare_results, values_at
from feelgood.stats.intervals import Estimate
from feelgood.stats.pairs import PairedDifference, diverged_last, equal

#: Fewer common seeds than this say nothing.
FEWEST_SEEDS = 5
LEVEL = 0.95


class Word(enum.Enum):
    """What an interval says."""

    HELPS = "helps"
    HURTS = "hurts"
    NOTHING = "no difference seen"
    UNKNOWN = "cannot say"


@dataclasses.dataclass(frozen=True)
class Effect:
    """`changed` beside `base` over common seeds; `why` says why nothing can be said."""

    label: str
    changed: AgentResult | None
    base: AgentResult | None
    difference: PairedDifference | None
    better: Estimate | None
    why: str = ""

    @property
    def word(self) -> Word:
        """Helps if the whole interval is below zero, hurts if it is above."""
        if self.difference is None or self.why:
            return Word.UNKNOWN
        if self.difference.high < 0:
            return Word.HELPS
        if self.difference.low > 0:
            return Word.HURTS
        return Word.NOTHING

    @property
    def regrets(self) -> tuple[float, float]:
        """Mean regret of `changed` and of `base` over the seeds of the difference."""
        if self.changed is None or self.base is None:
            return math.nan, math.nan
        if self.difference is None or self.difference.count == 0:
            return math.nan, math.nan
        seeds = common_seeds([self.changed, self.base])
        both = np.stack([values_at(self.changed, seeds), values_at(self.base, seeds)])
        changed, base = both[:, np.isfinite(both).all(axis=0)].mean(axis=1)
        return float(changed), float(base)

    @property
    def relative(self) -> float:
        """The difference in units of the base's mean regret on the same seeds."""
        _, base = self.regrets
        return self.difference.mean / base if self.difference and base > 0 else math.nan


def effect(label: str, changed: AgentResult | None, base: AgentResult | None) -> Effect:
    """What `changed` does to the regret of `base`, or why that cannot be said."""
    if changed is None or base is None:
        return Effect(label, changed, base, None, None, "not run")
    try:
        difference, better = compare_results(changed, base, level=LEVEL)
    except FeelgoodError:
        return Effect(label, changed, base, None, None, "no seed in common")
    why = ""
    if difference.dropped:
        seeds = difference.count + difference.dropped
        why = f"chains diverged on {difference.dropped} of {seeds} seeds"
    elif difference.count < FEWEST_SEEDS:
        why = f"{difference.count} seeds are too few"
    return Effect(label, changed, base, difference, better, why)


# Words ---------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A regret in few characters."""
    if not math.isfinite(value):
        return "–"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}"
    return f"−{text[1:]}" if text.startswith("-") else text


def signed(value: float) -> str:
    """The same with its sign."""
    text = number(value)
    return f"+{text}" if value > 0 and math.isfinite(value) else text


def interval(difference: PairedDifference) -> str:
    """`−3.1 [−5.0, −1.2]`."""
    return f"{signed(difference.mean)} [{signed(difference.low)}, {signed(difference.high)}]"


def estimate(mean: Estimate) -> str:
    """`89.2 [84.8, 94.4]`."""
    return f"{number(mean.value)} [{number(mean.low)}, {number(mean.high)}]"


def seeds_text(effects: Sequence[Effect]) -> str:
    """`30 seeds`, or `5 to 30 seeds`."""
    counts = [e.difference.count for e in effects if e.difference is not None]
    if not counts:
        return "no seeds"
    low, high = min(counts), max(counts)
    return f"{high} seeds" if low == high else f"{low} to {high} seeds"


def enumeration(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def capital(text: str) -> str:
    """With a capital letter first, the others as they are."""
    return text[:1].upper() + text[1:]


def summary(subject: str, effects: Sequence[Effect]) -> str:
    """One sentence: where `subject` helps, where it hurts, and where nothing can be said."""
    if not effects:
        return f"{subject}: cannot say, nothing was run."
    labels = _telling([e.label for e in effects])
    parts = []
    for word in Word:
        shown = [
            f"{label} ({e.why if e.why or e.difference is None else interval(e.difference)})"
            for label, e in zip(labels, effects, strict=True)
            if e.word is word
        ]
        if shown:
            parts.append(f"{word.value} at {enumeration(shown)}")
    return f"{subject}: {'; '.join(parts)} ({seeds_text(effects)})."


def _telling(labels: Sequence[str]) -> list[str]:
    """Labels such as `λ = 0.1, b = 1` without the parts that all of them have."""
    parts = [label.split(", ") for label in labels]
    common = set.intersection(*map(set, parts)) if len(labels) > 1 else set()
    kept = [", ".join(p for p in own if p not in common) for own in parts]
    return [short or label for short, label in zip(kept, labels, strict=True)]


def tally(effects: Sequence[Effect]) -> str:
    """How many effects have which word."""
    counts = {word: sum(e.word is word for e in effects) for word in Word}
    return ", ".join(f"{word.value} {n}" for word, n in counts.items() if n)


def tally_sentence(subject: str, effects: Sequence[Effect]) -> str:
    """`subject: of 12 pairs it helps in 1, hurts in 8, …`."""
    if not effects:
        return f"{subject}: cannot say, no pair was run."
    pairs = "one pair" if len(effects) == 1 else f"{len(effects)} pairs"
    return f"{subject}: of {pairs} on {_where(effects)}, {tally(effects)} ({seeds_text(effects)})."


#: More testbeds than this are counted, not named.
MANY = 4


def _where(effects: Sequence[Effect]) -> str:
    runs = [e.changed or e.base for e in effects]
    return testbeds_text(list(dict.fromkeys(run.testbed for run in runs if run is not None)))


def testbeds_text(testbeds: Sequence[str]) -> str:
    """`linear-20 and linear-40`, or `9 testbeds`."""
    if not testbeds:
        return "no testbed"
    return enumeration(testbeds) if len(testbeds) <= MANY else f"{len(testbeds)} testbeds"


def distinct(effects: Sequence[Effect]) -> list[Effect]:
    """Each pair once: a smoothed agent that plays as the plain one does is no second one.

    Pairs are the same where both of them have the same regret on every seed, up to rounding.
    """
    kept: list[Effect] = []
    for e in effects:
        if e.difference is None or not any(_same_pair(e, other) for other in kept):
            kept.append(e)
    return kept


def _same_pair(a: Effect, b: Effect) -> bool:
    return _same_run(a.changed, b.changed) and _same_run(a.base, b.base)


def _same_run(a: AgentResult | None, b: AgentResult | None) -> bool:
    if a is None or b is None or (a.testbed, a.seeds) != (b.testbed, b.seeds):
        return False
    return bool(equal(diverged_last(a.final_regret), diverged_last(b.final_regret)).all())


HEADER = (
    "testbed",
    "agent",
    "what",
    "regret",
    "beside",
    "difference, 95 % interval",
    "relative",
    "better on",
    "seeds",
    "verdict",
)


def table(effects: Sequence[Effect]) -> str:
    """The effects as a Markdown table."""
    lines = ["| " + " | ".join(HEADER) + " |", "|---|---|---|--:|--:|--:|--:|--:|--:|---|"]
    for e in effects:
        run = e.changed or e.base
        agent = f"`{e.changed.agent}`" if e.changed else "–"
        cells = [run.testbed if run else "–", agent, e.label]
        if e.difference is None or e.better is None or e.changed is None or e.base is None:
            cells += ["–"] * 6
        else:
            share = signed(100 * e.relative) if math.isfinite(e.relative) else "–"
            cells += [
                *map(number, e.regrets),
                interval(e.difference),
                f"{share} %",
                f"{100 * e.better.value:.0f} % of seeds",
                str(e.difference.count),
            ]
        cells.append(f"{e.word.value}: {e.why}" if e.why else e.word.value)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
