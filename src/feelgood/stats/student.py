"""Student's t: two-sided probabilities and quantiles."""

import math
from typing import Any

from feelgood.core.arguments import parse_level, parse_number
from feelgood.core.errors import FeelgoodError, shown


def t_two_sided(t: float | Any, df: float | Any) -> float:
    """P(|T| ≥ |t|) for Student's law with `df` degrees of freedom."""
    from scipy.special import stdtr  # takes 13 MB, and planning a study needs none of it

    t, df = parse_number("t", t, finite=False), _degrees(df)
    return 0.0 if math.isinf(t) else 2.0 * float(stdtr(df, -abs(t)))


def t_quantile(level: float | Any, df: float | Any) -> float:
    """The t with P(|T| ≥ t) = 1 − level."""
    from scipy.special import stdtrit

    tail = 0.5 * (1.0 - parse_level("level", level))
    return -float(stdtrit(_degrees(df), tail))


def _degrees(df: Any) -> float:
    """Degrees of freedom; they may be missing (NaN)."""
    number = parse_number("df", df, "a number above 0", finite=False)
    if number <= 0.0:
        raise FeelgoodError(f"df = {shown(df)} is not allowed: use a number above 0.")
    return number


def p_of_mean(difference: float, error: float, df: float) -> float:
    """Two-sided p of a difference; without any spread, equality is certain or impossible."""
    if error == 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return t_two_sided(difference / error, df)
