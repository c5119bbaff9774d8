"""Checks of settings, of agents and testbeds alike."""

import math
from collections.abc import Mapping
from typing import Any

from feelgood.api.findings import Findings
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.registry import Entry


def check_documented(entry: Entry[Any]) -> Findings:
    """A sentence on the whole and a few words on every setting."""
    if len(entry.doc) <= 10 or not entry.doc.endswith(".") or "\n" in entry.doc:
        yield (
            f"the first line of its documentation is {shown(entry.doc)}: write one sentence, with "
            "its full stop, which 'feelgood list' shows."
        )
    for key, rule in entry.settings.items():
        if not (key.isascii() and key.islower()):
            yield f"the setting '{key}' is hard to type: use small letters of the alphabet."
        if len(rule.doc) <= 3:
            yield f"the setting '{key}' is not documented: say in a few words what it is."


def check_bounds(entry: Entry[Any]) -> Findings:
    """Every number has a range that is kept to, and nonsense is refused."""
    for key, rule in entry.settings.items():
        try:
            kept = rule.check(entry.name, key, rule.default) == rule.default
        except FeelgoodError:
            kept = False
        if not kept:
            yield f"the default of '{key}', {shown(rule.default)}, is outside its own range."
        wrong: list[Any] = ["nonsense"]
        if rule.kind in (int, float):
            if rule.low is None and rule.above is None:
                yield f"the setting '{key}' has no lower bound: give low or above."
            if rule.high is None:
                yield f"the setting '{key}' has no upper bound: give high."
            wrong += [None, math.nan, math.inf, -math.inf, True]
            wrong += [] if rule.high is None else [rule.high + abs(rule.high) + 1]
            wrong += [] if rule.above is None else [rule.above]
            wrong += [] if rule.low is None else [rule.low - abs(rule.low) - 1]
            wrong += [rule.default + 0.5] if isinstance(rule.default, int) else []
            for bound in (rule.low, rule.high):
                if bound is not None and rule.check(entry.name, key, bound) != bound:
                    yield f"the setting '{key}' refuses {bound}, its own bound."
        for value in wrong:
            expected = f"{entry.name}.{key} = {shown(value)} is not allowed: use {rule.describe()}."
            if _refusal(entry, {key: value}) != expected:
                yield f"the setting '{key}' does not refuse {shown(value)}."
    if f"{entry.name} has no setting 'nonsense'" not in _refusal(entry, {"nonsense": 1}):
        yield "a setting that does not exist is not refused."


def _refusal(entry: Entry[Any], values: Mapping[str, Any]) -> str:
    try:
        entry.build(values)
    except FeelgoodError as error:
        return str(error)
    return ""
