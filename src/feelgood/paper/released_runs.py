"""What the released code ran for a published number: `released.toml` says it, this matches."""

import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from feelgood.core.errors import FeelgoodError
from feelgood.paper.published_numbers import Published
from feelgood.paper.reasons import MATCHED, holds

#: What a run may give, and what it is where no run gives it.
_GIVEN: Mapping[str, Any] = {
    "problem": "{testbed}",
    "problem_settings": {},
    "player": "{agent}",
    "preset": "released",
    "settings": None,
    "remark": None,
    "cannot": None,
    "stands_for": None,
}


def released_run(number: Published) -> dict[str, Any]:
    """What to run; `settings` is None where they are the number's own."""
    found = dict(_GIVEN)
    for one in reversed(_runs()):
        if holds(one, number):
            found |= {key: value for key, value in one.items() if key in _GIVEN}
    names = {"testbed": number.testbed, "agent": number.agent}
    return found | {key: found[key].format(**names) for key in ("problem", "player")}


@functools.cache
def _runs() -> tuple[dict[str, Any], ...]:
    text = files("feelgood.paper").joinpath("released.toml").read_text(encoding="utf-8")
    return tuple(map(_checked, tomllib.loads(text)["run"]))


def _checked(one: dict[str, Any]) -> dict[str, Any]:
    """A run; one that names or gives anything unknown, or gives nothing, is refused."""
    unknown = one.keys() - _GIVEN.keys() - set(MATCHED)
    if unknown or not one.keys() & _GIVEN.keys():
        raise FeelgoodError(
            f"released.toml has a run with {', '.join(one)}: match some of {', '.join(MATCHED)} "
            f"and give some of {', '.join(_GIVEN)}."
        )
    return one
