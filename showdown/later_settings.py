"""Settings that came after a result was kept: what the run had in their place.

Without them the result would be another one than the study asks for, and would be dropped.
"""

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from feelgood.core.policy import AGENTS
from feelgood.core.registry import Entry
from feelgood.core.testbed import TESTBEDS

Settings = Mapping[str, Any]


def _bonus_on(testbed: str, settings: Settings) -> str:
    """The bonus was on the score. Where that is the mean reward, nothing differs."""
    likelihood = settings["likelihood"]
    if likelihood == "auto":
        likelihood = TESTBEDS[testbed].build().spec.rewards
    return "score" if likelihood == "bernoulli" else "mean"


#: By setting, from the testbed and the settings that a run has. Other settings have their default
#: of today, with which a run is the same bits as before there was such a setting.
BEFORE: Mapping[str, Callable[[str, Settings], Any]] = {
    "bonus_on": _bonus_on,
    "early": lambda testbed, settings: 1,
    "lam_schedule": lambda testbed, settings: "constant",
}


@functools.cache
def with_later_settings(testbed: str, agent: str, settings: str) -> str:
    """All settings that the agent has today, from those of a kept run; both as JSON.

    A plug-in that is not loaded says nothing of its agents: their settings stay as they are.
    """
    if agent not in AGENTS:
        return settings
    own = json.loads(settings)
    entry: Entry[Any] = AGENTS[agent]
    for name, rule in entry.settings.items():
        if name not in own:
            own[name] = BEFORE[name](testbed, own) if name in BEFORE else rule.default
    return json.dumps(own, sort_keys=True)
