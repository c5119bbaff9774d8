"""What `--set agent.key=value` says."""

import json
from collections.abc import Sequence
from typing import Any

from feelgood.core.errors import FeelgoodError


def parse_value(text: str) -> Any:
    """`0.1`, `true`, `sqrt`, or a comma-separated list of such: a sweep."""
    parts = [part.strip() for part in text.split(",")]
    values: list[Any] = []
    for part in parts:
        try:
            values.append(json.loads(part))
        except (ValueError, RecursionError):
            values.append(part)
    return values if len(values) > 1 else values[0]


def parse_set_options(pairs: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """`agent.key=value` pairs as a nested dictionary; the key is what follows the last dot."""
    out: dict[str, dict[str, Any]] = {}
    for pair in pairs or ():
        left, equals, value = pair.partition("=")
        owner, dot, key = left.rpartition(".")
        if not equals or not dot or not owner or not key or not value:
            raise FeelgoodError(
                f"--set {pair} is not understood: write agent.key=value, such as linucb.alpha=0.5."
            )
        if key in out.setdefault(owner, {}):
            raise FeelgoodError(f"--set {owner}.{key} is given twice: give one value, or a list.")
        out[owner][key] = parse_value(value)
    return out


def parse_single_values(pairs: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """The same, where a list is no sweep but a mistake."""
    given = parse_set_options(pairs)
    for agent, values in given.items():
        for key, value in values.items():
            if isinstance(value, list):
                raise FeelgoodError(
                    f"--set {agent}.{key} is a list: give one value, and compare calls."
                )
    return given
