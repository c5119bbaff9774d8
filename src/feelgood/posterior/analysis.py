"""The paper's controlled analysis: which agents' draws are the posterior, and by how much not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from feelgood.core.arguments import (
    parse_names,
    parse_rounds,
    require_callable,
)
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.engine.compiling import keep_compiled_programs
from feelgood.posterior.analysis_results import AgentPosterior, Analysis
from feelgood.posterior.analysis_settings import AnalysisSettings
from feelgood.posterior.chains import gather, require_draws
from feelgood.posterior.draw_comparison import compare
from feelgood.posterior.laws import Observed, require_normal
from feelgood.posterior.matched_settings import agent_settings, noise_of

#: The agents of the paper's figure, from top to bottom.
PAPER_FIGURE = ("fglmcts", "lints", "lmcts", "malats", "plmcts")


def analyse_each(
    agents: Sequence[str] | str | Any = PAPER_FIGURE,
    *,
    progress: Callable[[str], None] | Any | None = None,
    **options: Any,
) -> Iterator[AgentPosterior]:
    """As `analyse`, one agent and data set at a time; all input is checked at the call.

    `progress` is called with a few words before each.
    """
    names = parse_names("agents", agents)
    require_callable("progress", progress)
    settings = AnalysisSettings(**options).checked(names)
    problem = TESTBEDS[settings.testbed].build()
    noise_of(settings.testbed, problem)
    built = {agent: _build(agent, settings, problem, settings.preset) for agent in names}
    for agent, (_, policy) in built.items():
        require_draws(agent, policy, problem.spec)
        require_normal(policy, problem.spec)
    # The gatherer is the right agent even where the others get a preset.
    gatherer = _build(settings.gatherer, settings, problem, None)[1]
    keep_compiled_programs()
    return _work(settings, problem, built, gatherer, progress or (lambda label: None))


def _build(
    agent: str, settings: AnalysisSettings, problem: Testbed, preset: str | None
) -> tuple[dict[str, Any], Policy]:
    """An agent's settings, and the agent."""
    assert settings.settings is not None, "the settings are checked ones"
    values = agent_settings(
        agent,
        settings.testbed,
        problem,
        settings.rounds,
        preset=preset,
        steps=settings.steps,
        given=settings.settings.get(agent, {}),
    )
    return AGENTS[agent].resolve(values), AGENTS[agent].build(values)


def _work(
    settings: AnalysisSettings,
    problem: Testbed,
    built: Mapping[str, tuple[dict[str, Any], Policy]],
    gatherer: Policy,
    progress: Callable[[str], None],
) -> Iterator[AgentPosterior]:
    """Every agent on every data set."""
    noise = noise_of(settings.testbed, problem)
    logs: dict[int, Observed] = {}
    for agent, (values, policy) in built.items():
        for seed in settings.seeds:
            progress(f"{agent}, seed {seed}")
            if settings.mode == "own":
                log = gather(problem, policy, settings.rounds, seed)
            else:
                if seed not in logs:
                    logs[seed] = gather(problem, gatherer, settings.rounds, seed)
                log = logs[seed]
            yield compare(
                agent,
                policy,
                problem,
                log,
                settings.sampling,
                noise=noise,
                seed=seed,
                level=settings.level,
                settings=values,
            )


def analyse(agents: Sequence[str] | str | Any = PAPER_FIGURE, **options: Any) -> Analysis:
    """How close the draws of agents are to the exact posterior, on the paper's problem.

    **Arguments:**

    - `agents`: names of agents that draw parameters; by default the five of the paper's figure.
    - `testbed`, `rounds`: a testbed with linear rewards and normal noise, and how many rounds.
    - `draws`, `steps`, `chains`, `burn`: draws in all, inner steps of each, independent chains that
      share them, and draws that every chain throws away first.
    - `mode`: `"same"`: all agents see the run of `gatherer`; `"own"`: each its own run.
    - `seeds`: one data set per seed.
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
