"""What is known about the published numbers: `reasons.toml` says it, this matches.

A reason says why a number may differ from what a right implementation has: a slip, other code than
the paper describes, a frozen chain. It excludes no number from its test.
"""

import functools
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from feelgood.core.errors import FeelgoodError
from feelgood.paper.published_numbers import Published

_PATTERNS = ("table", "testbed", "agent")
_NUMBERS = ("lam", "beta", "gamma")
#: What a reason may name.
MATCHED = (*_PATTERNS, *_NUMBERS)


def reason(number: Published) -> str | None:
    """The first reason that holds for the number; None if there is none."""
    return next((one["reason"] for one in _all_reasons() if holds(one, number)), None)


@functools.cache
def _all_reasons() -> tuple[dict[str, Any], ...]:
    text = files("feelgood.paper").joinpath("reasons.toml").read_text(encoding="utf-8")
    return tuple(map(_checked, tomllib.loads(text)["reason"]))


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    """A reason; one that would hold for every number, or names anything else, is refused."""
    if one.keys() == {"reason"} or not one.keys() <= {"reason", *MATCHED}:
        raise FeelgoodError(
            f"reasons.toml has a reason for {', '.join(one)}: use some of {', '.join(MATCHED)}."
        )
    return one


def holds(one: Mapping[str, Any], number: Published) -> bool:
    """Whether a number matches all that this names."""
    fits = all(
        any(fnmatchcase(getattr(number, name), pattern) for pattern in one[name].split())
        for name in _PATTERNS
        if name in one
    )
    return fits and all(_is(getattr(number, name), one[name]) for name in _NUMBERS if name in one)


def _is(value: float | None, wanted: int | float | str) -> bool:
    """Whether a number is the wanted one, or at least what stands after ">="."""
    if value is None:
        return False
    if isinstance(wanted, str):
        return value >= float(wanted.removeprefix(">="))
    return value == wanted
