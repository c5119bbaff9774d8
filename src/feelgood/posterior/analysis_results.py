"""What an analysis of posteriors returns: agents' draws, and what they are compared with."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from feelgood.posterior.laws import Law
from feelgood.posterior.measure_rows import MeasureRow
from feelgood.posterior.verdicts import PosteriorVerdict


@dataclasses.dataclass(frozen=True)
class PosteriorComparison:
    """Draws against one law."""

    rows: tuple[MeasureRow, ...]
    verdict: PosteriorVerdict

    def row(self, measure: str, arm: int | None = None) -> MeasureRow:
        """One measure of one arm, or of all arms together."""
        return next(r for r in self.rows if r.measure == measure and r.arm == arm)


@dataclasses.dataclass(frozen=True)
class AgentPosterior:
    """One agent's draws on one data set, and what they are compared with.

    `comparisons` has "posterior", the exact one, and "target", the agent's own exp(−βL), which is
    another law where its temperature differs or it has a bonus.
    """

    agent: str
    seed: int
    settings: Mapping[str, Any]
    plays: Int[np.ndarray, " arms"]
    draws: Float[np.ndarray, "chains draws blocks dim"]
    laws: Mapping[str, Law]
    comparisons: Mapping[str, PosteriorComparison]
    seconds: float

    @property
    def verdict(self) -> PosteriorVerdict:
        """On the agent's own target: whether its sampler is right."""
        return self.comparisons["target" if "target" in self.comparisons else "posterior"].verdict


@dataclasses.dataclass(frozen=True)
class Analysis:
    """All agents on all data sets."""

    testbed: str
    mode: str
    rounds: int
    agents: tuple[AgentPosterior, ...]

    def __getitem__(self, agent: str) -> AgentPosterior:
        """The first data set of this agent."""
        return next(a for a in self.agents if a.agent == agent)

    def table(self) -> list[dict[str, Any]]:
        """One record per measure: what goes into JSON and Parquet."""
        return [
            {
                "agent": a.agent,
                "seed": a.seed,
                "against": against,
                "arm": row.arm,
                "plays": int(a.plays.sum() if row.arm is None else a.plays[row.arm]),
                "measure": row.measure,
                "value": _finite(row.value),
                "expected": _finite(row.expected),
                "error": _finite(row.error),
                "p_value": row.p_value,
            }
            for a in self.agents
            for against, comparison in a.comparisons.items()
            for row in comparison.rows
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything but the draws, in plain types."""
        return {
            "kind": "posterior",
            "testbed": self.testbed,
            "mode": self.mode,
            "rounds": self.rounds,
            "agents": [
                {
                    "agent": a.agent,
                    "seed": a.seed,
                    "settings": dict(a.settings),
                    "plays": a.plays.tolist(),
                    "chains": a.draws.shape[0],
                    "draws": a.draws.shape[0] * a.draws.shape[1],
                    "seconds": a.seconds,
                    "verdicts": {
                        against: {
                            "status": c.verdict.status,
                            "level": c.verdict.level,
                            "tests": c.verdict.tests,
                            "sentence": c.verdict.sentence,
                        }
                        for against, c in a.comparisons.items()
                    },
                }
                for a in self.agents
            ],
            "measures": self.table(),
        }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
