"""`feelgood.run`: agents by name or as objects, sweeps over settings, one result."""

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from feelgood.api.run_result import RunResult
from feelgood.core.arguments import (
    Seeds,
    parse_name,
    parse_rounds,
    parse_seeds,
    parse_settings,
    require_policy,
)
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.lookup import preset_settings
from feelgood.core.policy import AGENTS, Policy, require_playable
from feelgood.core.testbed import Testbed
from feelgood.engine.building import (
    SettingValues,
    Variant,
    build_testbed,
    make_variants,
    measured_in,
    with_preset,
)
from feelgood.engine.compiling import keep_compiled_programs
from feelgood.engine.results import AgentResult
from feelgood.engine.simulation import simulate

if TYPE_CHECKING:
    from feelgood.posterior.along import PosteriorWatch

ReportProgress = Callable[[str, int, int], None]
#: A function, or whether to show a bar. `Any` leaves the answer to a wrong type to us.
ProgressOption = ReportProgress | bool | Any | None
Agents = str | Policy | Sequence[str | Policy] | Mapping[str, str | Policy] | Any


def _named_agents(agents: Agents) -> list[tuple[str, str | Policy]]:
    """The agents with the names that their results have."""
    if isinstance(agents, Mapping):
        for name, agent in agents.items():
            if not isinstance(name, str) or not name.strip() or name == "testbed":
                raise FeelgoodError(f"{shown(name)} is not allowed as an agent's name: use a text.")
            if name in AGENTS and not (isinstance(agent, str) and agent == name):
                raise FeelgoodError(
                    f"'{name}' is the name of another agent already: call yours otherwise."
                )
        named = list(agents.items())
    elif isinstance(agents, (str, Policy, type)) or not isinstance(agents, Iterable):
        named = [(_own_name(agents), agents)]
    elif isinstance(agents, (set, frozenset, bytes)):
        raise FeelgoodError(f"agents = {shown(agents)} is not allowed: use a list of agents.")
    else:
        named = [(_own_name(agent), agent) for agent in agents]
    if not named:
        raise FeelgoodError("no agent was named: name at least one, such as lints.")
    for _, agent in named:
        _own_name(agent)
    return [(name, str(agent) if isinstance(agent, str) else agent) for name, agent in named]


def _own_name(agent: Any) -> str:
    """What an agent is called that is given no name; what is no agent is refused."""
    if isinstance(agent, str):
        return str(agent)
    require_policy(agent)
    return type(agent).__name__


def _told_apart(variants: list[Variant]) -> list[Variant]:
    """The same under names that, with the settings, are all different.

    Objects can differ in more than their settings, so that a second one gets a number; the same
    name with the same settings twice would be the same run.
    """
    seen: dict[str, int] = {}
    out = []
    for variant in variants:
        key = json.dumps([variant.agent, dict(variant.settings)], sort_keys=True, default=repr)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1 and variant.agent in AGENTS:
            raise FeelgoodError(
                f"'{variant.agent}' is in this run twice with the same settings: leave one out."
            )
        name = variant.agent if seen[key] == 1 else f"{variant.agent} #{seen[key]}"
        out.append(dataclasses.replace(variant, agent=name))
    return out


@dataclasses.dataclass(frozen=True)
class _Problem:
    """What all agents of a run meet."""

    name: str
    testbed: Testbed
    settings: SettingValues
    rounds: int
    seeds: tuple[int, ...]


def run_each(
    testbed: str | Testbed | Any,
    agents: Agents,
    *,
    rounds: int | Any | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, SettingValues] | Any | None = None,
    preset: str | Any | None = None,
    posterior_every: int | Any | None = None,
    progress: ProgressOption = None,
) -> Iterator[AgentResult]:
    """As `run`, but an iterator: what has come out of it is finished, whatever happens next.

    All input is checked at the call, before anything runs.

    **Example:**

    >>> import feelgood
    >>> for one in feelgood.run_each("linear-20", ["lints", "uniform"], rounds=50, seeds=2):
    ...     print(one.agent)
    lints
    uniform
    """
    of_testbed, given = _settings_by_owner(testbed, settings)
    name, built, own = build_testbed(testbed, of_testbed)
    horizon = parse_rounds(built.rounds if rounds is None else rounds)
    problem = _Problem(name, built, own, horizon, parse_seeds(seeds))
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise FeelgoodError(
            f"progress = {shown(progress)} is not allowed: use True for a bar, or a function."
        )
    groups = _by_program(_told_apart(_variants(_named_agents(agents), given, preset, problem)))
    watches: list[PosteriorWatch | None] = [None] * len(groups)
    if posterior_every is not None:
        watches = _watches(posterior_every, groups, problem)
    keep_compiled_programs()
    return _run_groups(problem, groups, watches, progress)


def _settings_by_owner(
    testbed: Any, settings: Any
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Settings of the testbed, given under either name, and those of each agent."""
    given = parse_settings("settings", settings)
    of_testbed: dict[str, Any] = {}
    names = ["testbed", testbed] if isinstance(testbed, str) else ["testbed"]
    for owner in dict.fromkeys(names):
        for key, value in _parsed(owner, given.pop(owner, None)).items():
            if key in of_testbed:
                raise FeelgoodError(
                    f"testbed.{key} and {testbed}.{key} are both given: leave one out."
                )
            of_testbed[key] = value
    tables = {
        owner: values if isinstance(values, list) and values else [values]
        for owner, values in given.items()
    }
    return of_testbed, {o: [_parsed(o, one) for one in own] for o, own in tables.items()}


def _parsed(owner: str, values: Any) -> dict[str, Any]:
    return parse_settings(f"settings of {shown(owner, 40)}", values)


def _variants(
    named: list[tuple[str, str | Policy]],
    given: Mapping[str, Sequence[SettingValues]],
    preset: str | Any | None,
    problem: _Problem,
) -> list[Variant]:
    """All agents with all their settings."""
    labels = [label for label, _ in named]
    for label in given:
        if label not in labels:
            raise FeelgoodError(
                f"settings are given for {shown(label)}, which is not in this run: "
                f"use one of {', '.join(dict.fromkeys([*labels, 'testbed']))}."
            )
    where = (problem.name, problem.testbed.spec, problem.rounds)
    if preset is not None:  # objects have their settings; the preset must exist all the same
        preset_settings(parse_name("preset", preset), "lints", *where)
    variants: list[Variant] = []
    for label, agent in named:
        for own in given.get(label, [{}]):
            values = own
            if isinstance(agent, str):
                values = with_preset(preset, agent, own, *where)
            variants += make_variants(agent, values, label)
    for variant in variants:
        require_playable(variant.policy, problem.testbed.spec, variant.agent, problem.name)
    return variants


def _watches(
    every: Any, groups: list[list[Variant]], problem: _Problem
) -> "list[PosteriorWatch | None]":
    """What measures the draws of each group along the run; None for agents that draw none."""
    from feelgood.posterior.along import check_every, measurable, posterior_watch, require_some

    name, testbed = problem.name, problem.testbed
    watch = posterior_watch(check_every(every, problem.rounds), name, testbed)
    watches = [watch if measurable(g[0].policy, name, testbed) else None for g in groups]
    require_some((g[0].agent for g in groups), any(watches))
    return watches


def _by_program(variants: list[Variant]) -> list[list[Variant]]:
    """Neighbours of one name that differ in numbers only: each group is one program."""
    groups: list[list[Variant]] = []
    for _, neighbours in itertools.groupby(variants, key=lambda v: v.agent):
        by_shape: dict[Any, list[Variant]] = {}
        for variant in neighbours:
            leaves, structure = jax.tree.flatten(variant.policy)
            shapes = tuple((np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves)
            by_shape.setdefault((structure, shapes), []).append(variant)
        groups += by_shape.values()
    return groups


@contextlib.contextmanager
def _reporting(progress: ProgressOption) -> Iterator[ReportProgress]:
    """The function to call; with True it moves a bar that is there while the run goes on."""
    if progress is True:
        from rich.console import Console

        from feelgood.api.progress import progress_bar

        with progress_bar(Console(stderr=True)) as report:
            yield report
    else:
        yield progress or (lambda label, done, total: None)


def _run_groups(
    problem: _Problem,
    groups: list[list[Variant]],
    watches: "list[PosteriorWatch | None]",
    progress: ProgressOption,
) -> Iterator[AgentResult]:
    with _reporting(progress) as report:
        for group, watch in zip(groups, watches, strict=True):
            yield from _run_group(problem, group, watch, report)


def _run_group(
    problem: _Problem, group: list[Variant], watch: "PosteriorWatch | None", report: ReportProgress
) -> Iterator[AgentResult]:
    """Run the variants of one program together."""
    label = group[0].agent
    total = len(group) * len(problem.seeds) * problem.rounds
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(label, min(done, total), total)

    advance(0)
    outcome = simulate(
        problem.testbed,
        [v.policy for v in group],
        rounds=problem.rounds,
        seeds=problem.seeds,
        progress=advance,
        along=watch,
    )
    for g, variant in enumerate(group):
        yield AgentResult(
            agent=variant.agent,
            testbed=problem.name,
            settings=variant.settings,
            testbed_settings=problem.settings,
            rounds=problem.rounds,
            seeds=problem.seeds,
            **measured_in(outcome, g),
            posterior=None if watch is None else watch.collect(outcome, g),
            compile_s=outcome.compile_s,
            run_s=outcome.run_s,
        )


def run(
    testbed: str | Testbed | Any,
    agents: Agents,
    *,
    rounds: int | Any | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, SettingValues] | Any | None = None,
    preset: str | Any | None = None,
    posterior_every: int | Any | None = None,
    progress: ProgressOption = None,
) -> RunResult:
    """Run agents on a testbed and return everything that was measured.

    **Arguments:**

    - `testbed`: a name such as `"linear-20"`, or a `Testbed`.
    - `agents`: a name such as `"lints"`, a `Policy` object, or a list of such. A dictionary also
      gives the names to show: `{"cold": Boltzmann(0.1), "hot": Boltzmann(2.0)}`.
    - `rounds`: how many; by default the testbed's usual horizon.
    - `seeds`: `N` for 0 … N − 1, `"A:B"`, or a list or array of them. Every agent meets the
      same contexts and the same noise for a seed, so differences between agents are paired.
    - `settings`: `{"agent": {"key": value}}`; a list or array of values is a sweep, run as one
      program where the setting is a number. Settings that make no grid are a list of dictionaries,
      `{"agent": [{...}, {...}]}`. `{"testbed": {...}}` sets the testbed's.
    - `preset`: `"paper"` for the paper's settings of these agents on this testbed; `settings`
      given by hand win over it.
    - `posterior_every`: compare every agent's draws with its exact posterior every so many rounds.
      That needs a linear testbed with Gaussian noise. Agents that draw no parameters are not
      measured. The run stays the same.
    - `progress`: True shows a bar; a function is called with (agent, chain-rounds done,
      chain-rounds in all).

    **Example:**

    >>> import feelgood
    >>> result = feelgood.run("linear-20", ["lints", "linucb"], rounds=200, seeds=2)
    >>> [r.agent for r in result], result["lints"].final_regret.shape
    (['lints', 'linucb'], (2,))
    """
    return RunResult(
        tuple(
            run_each(
                testbed,
                agents,
                rounds=rounds,
                seeds=seeds,
                settings=settings,
                preset=preset,
                posterior_every=posterior_every,
                progress=progress,
            )
        )
    )
