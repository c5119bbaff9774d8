"""The paper's controlled analysis: which agents' draws are the posterior, and by how much not."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

import feelgood.agents
import feelgood.testbeds  # noqa: F401  (both imports fill the registries)
from feelgood.core.arguments import (
    Seeds,
    parse_level,
    parse_name,
    parse_names,
    parse_rounds,
    parse_seeds,
    parse_settings,
    parse_whole,
    require_callable,
)
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.protocols import AGENTS, TESTBEDS, Policy, Testbed
from feelgood.engine.compiling import keep_compiled_programs
from feelgood.engine.environment import environment
from feelgood.posterior.chains import gather, parallel_draws, require_draws
from feelgood.posterior.laws import (
    Law,
    Moments,
    Observed,
    exact_posterior,
    own_target,
    require_normal,
)
from feelgood.posterior.measures import FEWEST_CHAINS, LEVEL, Row, Verdict, judge, measure
from feelgood.posterior.settings import PRECISION, agent_settings, noise_of

#: The agents of the paper's figure, from top to bottom.
PAPER_FIGURE = ("fglmcts", "lints", "lmcts", "malats", "plmcts")
MODES = ("same", "own")
#: Fresh contexts on which the choice of arms is compared, and the seeds that they come from.
FRESH_CONTEXTS, FRESH_SEEDS = 200, 2**31

Progress = Callable[[str], None]
#: The most draws, steps or chains: their Monte Carlo error is far below what can matter.
MOST = 1_000_000


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Draws against one law."""

    rows: tuple[Row, ...]
    verdict: Verdict

    def row(self, measure: str, arm: int | None = None) -> Row:
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
    comparisons: Mapping[str, Comparison]
    seconds: float

    @property
    def verdict(self) -> Verdict:
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
        """One record a measure: what goes into JSON and Parquet."""
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


def fresh_contexts(testbed: Testbed, seed: int, count: int = FRESH_CONTEXTS) -> np.ndarray:
    """Contexts [count, *context] that no agent has seen."""
    block = environment(testbed, [(seed + FRESH_SEEDS) % 2**32], count)
    return np.asarray(block.contexts[..., 0], np.float64)


def compare(
    agent: str,
    policy: Policy,
    testbed: Testbed,
    log: Observed,
    *,
    noise: float,
    precision: float = PRECISION,
    draws: int = 1_500,
    chains: int = 30,
    burn: int = 10,
    seed: int = 0,
    live: bool = False,
    level: float = LEVEL,
    settings: Mapping[str, Any] | None = None,
) -> AgentPosterior:
    """One agent's draws with the data of `log`, against the exact posterior and its own target.

    `chains` chains start where the agent starts, take in all data, throw `burn` draws away and
    share `draws` draws among them; `live` chains make their inner steps in every round before.
    """
    began = time.perf_counter()
    spec = testbed.spec
    require_draws(agent, policy, spec)
    sampled = parallel_draws(
        policy,
        spec,
        log,
        chains=chains,
        draws=-(-draws // chains),
        burn=burn,
        seed=seed,
        live=live,
    )
    laws = {"posterior": exact_posterior(Moments.of(spec, log), noise, precision)}
    own = own_target(policy, spec, log, seed)
    if own is not None and not _same(own, laws["posterior"]):
        laws["target"] = own
    contexts = fresh_contexts(testbed, seed)
    comparisons = {}
    for against, law in laws.items():
        rows = measure(sampled, law, spec, contexts, seed)
        rounding = 0.0 if law.rounding is None else float(law.rounding.max())
        verdict = judge(rows, level, rounding)
        comparisons[against] = Comparison(rows=tuple(rows), verdict=verdict)
    return AgentPosterior(
        agent=agent,
        seed=seed,
        settings=dict(settings or {}),
        plays=np.bincount(log.arms, minlength=spec.arms),
        draws=sampled,
        laws=laws,
        comparisons=comparisons,
        seconds=time.perf_counter() - began,
    )


def _same(one: Law, other: Law) -> bool:
    """Whether two laws are equal up to the rounding of float32 settings."""
    if one.draws is not None:
        return False
    scale = np.sqrt(np.diagonal(other.covariance, axis1=-2, axis2=-1))
    close = np.abs(one.mean - other.mean) < 1e-4 * scale
    return bool(close.all() and np.allclose(one.covariance, other.covariance, rtol=1e-4))


def analyse_each(
    agents: Sequence[str] | str | Any = PAPER_FIGURE,
    *,
    testbed: str | Any = "planted",
    rounds: int | Any | None = None,
    draws: int | Any = 1_500,
    steps: int | Any = 100,
    chains: int | Any = 30,
    burn: int | Any = 10,
    mode: str | Any = "same",
    gatherer: str | Any = "lints",
    seeds: Seeds = 1,
    preset: str | Any | None = None,
    settings: Mapping[str, Mapping[str, Any]] | Any | None = None,
    live: bool | Any = False,
    level: float | Any = LEVEL,
    progress: Progress | Any | None = None,
) -> Iterator[AgentPosterior]:
    """As `analyse`, one agent and data set at a time; all input is checked at the call."""
    problem = TESTBEDS[testbed].build()
    horizon = parse_rounds(problem.rounds if rounds is None else rounds)
    noise = noise_of(testbed, problem)
    chosen = parse_seeds(seeds)
    chains = parse_whole("chains", chains, FEWEST_CHAINS, MOST)
    draws = parse_whole("draws", draws, chains, MOST)
    steps, burn = parse_whole("steps", steps, 1, 100_000), parse_whole("burn", burn, 0, MOST)
    level, agents = parse_level("level", level), parse_names("agents", agents)
    AGENTS[parse_name("gatherer", gatherer)]
    preset = None if preset is None else parse_name("preset", preset)
    require_callable("progress", progress)
    if not isinstance(live, bool):
        raise FeelgoodError(f"live = {shown(live)} is not allowed: use True or False.")
    if draws < 4 * chains:
        raise FeelgoodError(
            f"{draws} draws leave {draws // chains} a chain of {chains}: use fewer chains, "
            "or at least 4 draws a chain."
        )
    if not isinstance(mode, str) or mode not in MODES:
        raise FeelgoodError(f"mode = {shown(mode)} is not allowed: use one of {', '.join(MODES)}.")
    given = {
        owner: parse_settings(f"settings of {shown(owner, 40)}", values)
        for owner, values in parse_settings("settings", settings).items()
    }
    for label in given:
        if label not in (*agents, gatherer):
            raise FeelgoodError(
                f"settings are given for '{label}', which is not in this analysis: "
                f"use one of {', '.join(agents)}."
            )

    def build(agent: str, preset: str | None) -> tuple[dict[str, Any], Policy]:
        values = agent_settings(
            agent,
            testbed,
            problem,
            horizon,
            preset=preset,
            steps=steps,
            given=given.get(agent, {}),
        )
        return AGENTS[agent].resolve(values), AGENTS[agent].build(values)

    built = {agent: build(agent, preset) for agent in agents}
    for agent, (_, policy) in built.items():
        require_draws(agent, policy, problem.spec)
        require_normal(policy, problem.spec)
    # The gatherer is the right agent even where the others get a preset.
    logger = build(gatherer, None)[1]
    keep_compiled_programs()

    def work() -> Iterator[AgentPosterior]:
        logs: dict[int, Observed] = {}
        for agent, (values, policy) in built.items():
            for seed in chosen:
                if progress is not None:
                    progress(f"{agent}, seed {seed}")
                if mode == "own":
                    log = gather(problem, policy, horizon, seed)
                else:
                    if seed not in logs:
                        logs[seed] = gather(problem, logger, horizon, seed)
                    log = logs[seed]
                yield compare(
                    agent,
                    policy,
                    problem,
                    log,
                    noise=noise,
                    draws=draws,
                    chains=chains,
                    burn=burn,
                    seed=seed,
                    live=live,
                    level=level,
                    settings=values,
                )

    return work()


def analyse(agents: Sequence[str] | str | Any = PAPER_FIGURE, **options: Any) -> Analysis:
    """How close the draws of agents are to the exact posterior, on the paper's problem.

    **Arguments:**

    - `agents`: names of agents that draw parameters; by default the five of the paper's figure.
    - `testbed`, `rounds`: a testbed with linear rewards and normal noise, and how many rounds.
    - `draws`, `steps`, `chains`, `burn`: draws in all, inner steps of each, independent chains that
      share them, and draws that every chain throws away first.
    - `mode`: `"same"`: all agents see the run of `gatherer`; `"own"`: each its own run.
    - `seeds`: one data set a seed.
    - `preset`: None gives every agent the settings with which its target is the posterior (equal
      temperatures); `"paper"` those of the published tables.
    - `settings`: `{"agent": {"key": value}}`, which win over both.
    - `live`: chains make their inner steps in every round of the run, as a playing agent's do;
      by default they take in the data first and then draw.
    - `level`: family-wise false-alarm rate of each verdict.

    **Example:**

    >>> from feelgood.posterior import analyse
    >>> result = analyse(["lints"], rounds=100, draws=120, chains=10)
    >>> result["lints"].draws.shape
    (10, 12, 6, 20)
    """
    work = analyse_each(agents, **options)
    problem, rounds = options.get("testbed", "planted"), options.get("rounds")
    horizon = TESTBEDS[problem].build().rounds if rounds is None else parse_rounds(rounds)
    return Analysis(problem, options.get("mode", "same"), horizon, tuple(work))
