"""Numbers as people read them, in tables, sentences and charts: one function per form."""

import math
from typing import Any


def rounded(value: float, digits: int = 5) -> float | None:
    """The value to a few significant digits; None where it is not finite.

    **Example:**

    >>> from feelgood.core.numbers import rounded
    >>> rounded(1234.5678), rounded(0.00012345678, digits=3), rounded(float("nan"))
    (1234.6, 0.000123, None)
    """
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


def figure(value: float, like: float | None = None) -> str:
    """A regret, or a difference of two, in few characters; with as many digits as `like` has."""
    if not math.isfinite(value):
        return "–"
    size = abs(value if like is None else like)
    digits = 1 if size >= 10 or size == 0 else 2 if size >= 1 else 4
    return f"{value:,.{digits}f}"


def table_number(value: float) -> str:
    """One digit after the point below ten thousand, none above."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.1f}" if abs(value) < 10_000 else f"{value:,.0f}"


def tile_number(value: float) -> str:
    """Three significant digits below a thousand, all whole ones above."""
    return f"{value:,.3g}" if value < 1e3 else f"{value:,.0f}"


def mean_and_std(mean: float, std: float, count: int, digits: int) -> str:
    """`mean ± std`; the mean alone of one chain, a dash where none is left."""
    if count == 0:
        return "–"
    text = f"{mean:,.{digits}f}"
    return text if count == 1 else f"{text} ± {std:,.{digits}f}"


def with_half_width(value: float, half: float) -> str:
    """`value ± half` of an interval, with two significant digits of the half."""
    if not math.isfinite(value):
        return "–"
    if not math.isfinite(half) or half <= 0.0:
        return f"{value:.4g}".replace("-", "−")
    digits = min(max(1 - math.floor(math.log10(half)), 0), 12)
    return f"{value:,.{digits}f} ± {half:,.{digits}f}".replace("-", "−")


def mean_std_count(mean: float, std: float, count: int) -> str:
    """`mean ± std (count)`; a dash where nothing is counted."""
    if count == 0:
        return "–"
    spread = f" ± {table_number(std)}" if math.isfinite(std) else ""
    return f"{table_number(mean)}{spread} ({count})"


def p_text(value: float) -> str:
    """The p of a test."""
    if not math.isfinite(value):
        return "–"
    return "<0.0001" if value < 1e-4 else f"{value:.4f}" if value < 0.1 else f"{value:.2f}"


def with_minus(value: float) -> str:
    """One digit after the point, and a minus sign that is no hyphen."""
    return f"{value:,.1f}".replace("-", "−")


def with_sign(value: float) -> str:
    """As `with_minus`, with a plus too; whole numbers from a thousand on."""
    digits = 1 if abs(value) < 1000 else 0
    return f"{value:+,.{digits}f}".replace("-", "−")


def setting_text(value: Any) -> str:
    """A setting's value in few characters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3.2 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
