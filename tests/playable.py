"""The problems that agents can play, found out once per process."""

import functools

from feelgood import AGENTS
from feelgood.api.agent_case import PLAIN, problems_for


@functools.cache
def problems_of(name: str) -> tuple[str, ...]:
    """The problems that an agent of this name is checked on."""
    return problems_for(AGENTS[name].build())


def live_plays() -> list[tuple[str, str]]:
    """Every agent on the problems that a live bandit can have: nothing is known beforehand."""
    return [(a, p) for a in AGENTS.names() for p in problems_of(a) if p in PLAIN]
