"""Presets: settings of many agents that go together under one name, such as `paper`."""

from collections.abc import Callable
from typing import Any

from feelgood.core.lookup import Lookup
from feelgood.core.spec import Spec

#: By name, a function from agent, testbed, the testbed's shape and rounds to settings.
PRESETS: Lookup[Callable[[str, str, Spec, int], dict[str, Any]]] = Lookup(
    "preset", "feelgood.paper.presets"
)


def preset_settings(
    preset: str, agent: str, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any]:
    """The settings of `agent` in this preset; a clear error for an unknown preset."""
    return PRESETS[preset](agent, testbed, spec, rounds)
