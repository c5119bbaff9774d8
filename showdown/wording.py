"""Numbers and lists in few characters."""

import math
from collections.abc import Sequence

from feelgood.stats.intervals import Estimate
from feelgood.stats.studentised import StudentisedMean

#: More names than this are counted, not listed.
MANY = 4
#: A hundred times the regret.
FAR = 99.0


def number(value: float) -> str:
    """A regret in few characters."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}"
    return f"−{text[1:]}" if text.startswith("-") else text


def signed(value: float) -> str:
    """The same with its sign."""
    text = number(value)
    return f"+{text}" if value > 0 else text


def interval(difference: StudentisedMean) -> str:
    """`−3.1 [−5.0, −1.2]`."""
    return f"{signed(difference.value)} [{signed(difference.low)}, {signed(difference.high)}]"


def estimate(mean: Estimate) -> str:
    """`89.2 [84.8, 94.4]`."""
    return f"{number(mean.value)} [{number(mean.low)}, {number(mean.high)}]"


def percent(change: StudentisedMean) -> str:
    """`−3.1 % [−5.0, −1.2]`, from shares; an end too far off to tell anything is `no bound`."""
    ends = ("no bound" if end > FAR else _one(100 * end) for end in (change.low, change.high))
    return f"{_one(100 * change.value)} % [{', '.join(ends)}]"


def _one(value: float) -> str:
    if not math.isfinite(value):
        return signed(value)
    text = f"{value:+,.{0 if abs(value) >= 100 else 1}f}"
    return text.replace("-", "−")


def enumeration(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def capital(text: str) -> str:
    """With a capital letter first, the others as they are."""
    return text[:1].upper() + text[1:]


def testbeds_text(testbeds: Sequence[str]) -> str:
    """`linear-20 and linear-40`, or `9 testbeds`."""
    if not testbeds:
        return "no testbed"
    return enumeration(testbeds) if len(testbeds) <= MANY else f"{len(testbeds)} testbeds"


def count(number_of: int, what: str) -> str:
    """`1 pair`, `3 pairs`."""
    return f"{number_of} {what}" if number_of == 1 else f"{number_of:,} {what}s"


def seeds_span(counts: Sequence[int]) -> str:
    """`30 seeds`, or `30 to 100 seeds`."""
    if not counts:
        return "no seeds"
    low, high = min(counts), max(counts)
    return f"{high} seeds" if low == high else f"{low} to {high} seeds"
