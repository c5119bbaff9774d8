"""What a run is built of: a testbed, agents with their settings, and a result from an outcome.

Used by `feelgood.run` and by studies alike.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from feelgood.core.arguments import parse_name, parse_settings, require_testbed
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.lookup import preset_settings
from feelgood.core.policy import AGENTS, Policy, require_playable
from feelgood.core.settings import own_settings, public
from feelgood.core.spec import Spec
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.engine import schema
from feelgood.engine.results import in_fields
from feelgood.engine.schema import Axes
from feelgood.engine.simulation import Outcome

MAX_VARIANTS = 20_000

SettingValues = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Variant:
    """One agent with one setting, ready to run."""

    agent: str
    settings: SettingValues
    policy: Policy


def _sweep(value: Any) -> list[Any] | None:
    """The values of a sweep: a list, a tuple, a range or an array with one axis; else None."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 1:
        if isinstance(value, np.ma.MaskedArray):
            return list(value)
        single = value.dtype == np.float32
        return [public(v) for v in np.asarray(value)] if single else np.asarray(value).tolist()
    return None


def _grid(values: SettingValues) -> Iterator[dict[str, Any]]:
    """The cross product of all settings that are lists."""
    lists = {k: [v] if (many := _sweep(v)) is None else many for k, v in values.items()}
    for combination in itertools.product(*lists.values()):
        yield dict(zip(lists, combination, strict=True))


def make_variants(
    which: str | Policy, values: SettingValues, label: str | None = None
) -> list[Variant]:
    """An agent once per setting, under `label` or its own name."""
    if isinstance(which, Policy):
        name = label or type(which).__name__
        if values:
            raise FeelgoodError(f"settings of {name} are given with the object itself.")
        return [Variant(name, own_settings(which), which)]
    entry = AGENTS[which]
    sizes = [len(many) for value in values.values() if (many := _sweep(value)) is not None]
    for name, value in values.items():
        if _sweep(value) == []:
            raise FeelgoodError(
                f"{which}.{name} = {shown(value)} is not allowed: give at least one value."
            )
    if math.prod(sizes) > MAX_VARIANTS:
        raise FeelgoodError(
            f"the grid of {which} has {math.prod(sizes):,} settings: use at most {MAX_VARIANTS:,}."
        )
    return [Variant(label or which, entry.resolve(v), entry.build(v)) for v in _grid(values)]


def with_preset(
    preset: str | Any | None,
    agent: str,
    values: SettingValues,
    testbed: str,
    spec: Spec,
    rounds: int,
) -> dict[str, Any]:
    """The settings given, over those of the preset."""
    if preset is None:
        return dict(values)
    preset = parse_name("preset", preset)
    known = AGENTS[agent].settings
    defaults = preset_settings(preset, agent, testbed, spec, rounds)
    return {k: v for k, v in defaults.items() if k in known} | dict(values)


def resolve_variants(
    agent: str,
    values: SettingValues,
    preset: str | Any | None,
    testbed: str,
    spec: Spec,
    rounds: int,
) -> list[SettingValues]:
    """All settings of each variant of an agent, checked; lists among `values` make a grid."""
    every = with_preset(preset, agent, values, testbed, spec, rounds)
    grid = list(itertools.islice(_grid(every), MAX_VARIANTS + 1))
    if not 0 < len(grid) <= MAX_VARIANTS:
        make_variants(agent, every)  # says what is wrong with it
    entry, seen = AGENTS[agent], set()
    resolved: list[SettingValues] = []
    for one in grid:
        settings = entry.resolve(one)
        # Whether an agent can be built depends on which numbers are 0, and not on their values.
        kind = tuple(v > 0 if isinstance(v, float) else v for v in settings.values())
        if kind not in seen:
            seen.add(kind)
            require_playable(entry.build(one), spec, agent, testbed)
        resolved.append(settings)
    return resolved


def build_testbed(
    which: str | Testbed | Any, values: Any = None
) -> tuple[str, Testbed, SettingValues]:
    """A testbed with its name and settings."""
    given = parse_settings("the testbed's settings", values)
    if isinstance(which, str):
        if which in AGENTS and which not in TESTBEDS:
            raise FeelgoodError(
                f"'{which}' is an agent, not a testbed: name the testbed first, such as linear-20."
            )
        entry = TESTBEDS[which]
        return which, entry.build(given), entry.resolve(given)
    require_testbed(which)
    own = getattr(which, "name", None)
    name = own if isinstance(own, str) and own else type(which).__name__
    if given:
        raise FeelgoodError(f"settings of {name} are given with the object itself.")
    return name, which, own_settings(which)


def measured_in(outcome: Outcome, setting: int, chains: slice = slice(None)) -> dict[str, Any]:
    """What an outcome holds of one setting's chains, as arguments of `AgentResult`."""
    numbers: dict[str, Any] = {}
    for quantity in schema.QUANTITIES:
        values = outcome.number(quantity.name)
        if quantity.axes is Axes.DIAGNOSTIC:
            numbers[quantity.name] = {k: own[setting, chains] for k, own in values.items()}
        else:
            numbers[quantity.name] = values[setting, chains]
    return {**in_fields(numbers), "curve_rounds": outcome.grid}
