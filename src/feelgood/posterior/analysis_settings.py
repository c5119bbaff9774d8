"""The settings of an analysis of posteriors, and their checks."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from feelgood.core.arguments import (
    parse_level,
    parse_name,
    parse_rounds,
    parse_seeds,
    parse_settings,
    parse_whole,
)
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import TESTBEDS
from feelgood.posterior.draw_comparison import Sampling
from feelgood.posterior.measures import FEWEST_CHAINS
from feelgood.posterior.verdicts import POSTERIOR_LEVEL

MODES = ("same", "own")
#: The most draws, steps or chains: their Monte Carlo error is far below what can matter.
MOST = 1_000_000


@dataclasses.dataclass(frozen=True)
class AnalysisSettings:
    """What `analyse` takes; it says what each of them is."""

    testbed: str | Any = "planted"
    rounds: Any = None
    draws: int | Any = 1_500
    steps: int | Any = 100
    chains: int | Any = 30
    burn: int | Any = 10
    mode: str | Any = "same"
    gatherer: str | Any = "lints"
    seeds: Any = 1
    preset: str | Any | None = None
    settings: Mapping[str, Mapping[str, Any]] | Any | None = None
    live: bool | Any = False
    level: float | Any = POSTERIOR_LEVEL

    @property
    def sampling(self) -> Sampling:
        """How each agent draws."""
        return Sampling(self.draws, self.chains, self.burn, self.live)

    def checked(self, agents: Sequence[str]) -> "AnalysisSettings":
        """The same, each value as it is used; or one sentence on the first that is wrong."""
        problem = TESTBEDS[self.testbed].build()
        rounds = parse_rounds(problem.rounds if self.rounds is None else self.rounds)
        seeds = parse_seeds(self.seeds)
        chains = parse_whole("chains", self.chains, FEWEST_CHAINS, MOST)
        draws = parse_whole("draws", self.draws, chains, MOST)
        steps = parse_whole("steps", self.steps, 1, 100_000)
        burn, level = parse_whole("burn", self.burn, 0, MOST), parse_level("level", self.level)
        AGENTS[parse_name("gatherer", self.gatherer)]
        preset = None if self.preset is None else parse_name("preset", self.preset)
        if not isinstance(self.live, bool):
            raise FeelgoodError(f"live = {shown(self.live)} is not allowed: use True or False.")
        if draws < 4 * chains:
            raise FeelgoodError(
                f"{draws} draws over {chains} chains are {draws // chains} per chain: use fewer "
                "chains, or at least 4 draws per chain."
            )
        if not isinstance(self.mode, str) or self.mode not in MODES:
            raise FeelgoodError(
                f"mode = {shown(self.mode)} is not allowed: use one of {', '.join(MODES)}."
            )
        return dataclasses.replace(
            self,
            rounds=rounds,
            seeds=seeds,
            chains=chains,
            draws=draws,
            steps=steps,
            burn=burn,
            level=level,
            preset=preset,
            settings=self._given(agents),
        )

    def _given(self, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Settings by agent; an agent that is not in the analysis is refused."""
        given = {
            owner: parse_settings(f"settings of {shown(owner, 40)}", values)
            for owner, values in parse_settings("settings", self.settings).items()
        }
        for label in given:
            if label not in (*agents, self.gatherer):
                raise FeelgoodError(
                    f"settings are given for '{label}', which is not in this analysis: "
                    f"use one of {', '.join(agents)}."
                )
        return given
