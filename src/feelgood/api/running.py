"""`feelgood.run`: agents by name or as objects, sweeps over settings, one result."""

import contextlib
import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

import feelgood.agents
import feelgood.testbeds  # noqa: F401  (both imports fill the registries)
from feelgood.core.arguments import (
    MAX_ROUNDS,
    MAX_SEEDS,
    Seeds,
    parse_name,
    parse_rounds,
    parse_seeds,
    parse_settings,
    require_policy,
    require_testbed,
)
from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.protocols import AGENTS, TESTBEDS, Policy, Testbed
from feelgood.core.settings import own_settings, public
from feelgood.core.spec import Spec
from feelgood.engine.compiling import keep_compiled_programs
from feelgood.engine.results import AgentResult, PosteriorAlong, RunResult
from feelgood.engine.simulation import Along, Outcome, simulate
from feelgood.paper import preset_settings

__all__ = [
    "AGENTS",
    "MAX_ROUNDS",
    "MAX_SEEDS",
    "TESTBEDS",
    "Seeds",
    "build_testbed",
    "parse_rounds",
    "parse_seeds",
    "run",
    "run_each",
]

MAX_VARIANTS = 20_000

Report = Callable[[str, int, int], None]
#: A function, or whether to show a bar. `Any` leaves the answer to a wrong type to us.
Progress = Report | bool | Any | None
Values = Mapping[str, Any]
Agents = str | Policy | Sequence[str | Policy] | Mapping[str, str | Policy] | Any


@dataclasses.dataclass(frozen=True)
class _Variant:
    """One agent with one setting, ready to run."""

    agent: str
    settings: Values
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


def _grid(values: Values) -> Iterator[dict[str, Any]]:
    """The cross product of all settings that are lists."""
    lists = {k: [v] if (many := _sweep(v)) is None else many for k, v in values.items()}
    for combination in itertools.product(*lists.values()):
        yield dict(zip(lists, combination, strict=True))


def _variants(which: str | Policy, values: Values, label: str | None = None) -> list[_Variant]:
    """An agent once a setting, under `label` or its own name."""
    if isinstance(which, Policy):
        name = label or type(which).__name__
        if values:
            raise FeelgoodError(f"settings of {name} are given with the object itself.")
        return [_Variant(name, own_settings(which), which)]
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
    return [_Variant(label or which, entry.resolve(v), entry.build(v)) for v in _grid(values)]


def _with_preset(
    preset: str | Any | None, agent: str, values: Values, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any]:
    """The settings given, over those of the preset."""
    if preset is None:
        return dict(values)
    preset = parse_name("preset", preset)
    known = AGENTS[agent].settings
    defaults = preset_settings(preset, agent, testbed, spec, rounds)
    return {k: v for k, v in defaults.items() if k in known} | dict(values)


def resolve_variants(
    agent: str, values: Values, preset: str | Any | None, testbed: str, spec: Spec, rounds: int
) -> list[Values]:
    """All settings of each variant of an agent, checked; lists among `values` make a grid."""
    every = _with_preset(preset, agent, values, testbed, spec, rounds)
    grid = list(itertools.islice(_grid(every), MAX_VARIANTS + 1))
    if not 0 < len(grid) <= MAX_VARIANTS:
        _variants(agent, every)  # says what is wrong with it
    entry, seen = AGENTS[agent], set()
    resolved: list[Values] = []
    for one in grid:
        settings = entry.resolve(one)
        # Which numbers do not matter to whether an agent can be built, but whether they are 0.
        kind = tuple(v > 0 if isinstance(v, float) else v for v in settings.values())
        if kind not in seen:
            seen.add(kind)
            entry.build(one)
        resolved.append(settings)
    return resolved


def build_testbed(which: str | Testbed | Any, values: Any = None) -> tuple[str, Testbed, Values]:
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


def _told_apart(variants: list[_Variant]) -> list[_Variant]:
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


def run_each(
    testbed: str | Testbed | Any,
    agents: Agents,
    *,
    rounds: int | Any | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, Values] | Any | None = None,
    preset: str | Any | None = None,
    posterior_every: int | Any | None = None,
    progress: Progress = None,
) -> Iterator[AgentResult]:
    """As `run`, but an iterator: what has come out of it is finished, whatever happens next.

    All input is checked at the call, before anything runs.
    """
    given = {
        owner: parse_settings(f"settings of {shown(owner, 40)}", values)
        for owner, values in parse_settings("settings", settings).items()
    }
    testbed_values = given.pop("testbed", {})
    if isinstance(testbed, str):
        for key, value in given.pop(testbed, {}).items():
            if key in testbed_values:
                raise FeelgoodError(
                    f"testbed.{key} and {testbed}.{key} are both given: leave one out."
                )
            testbed_values[key] = value
    name, problem, problem_settings = build_testbed(testbed, testbed_values)
    horizon = parse_rounds(problem.rounds if rounds is None else rounds)
    chosen = parse_seeds(seeds)
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise FeelgoodError(
            f"progress = {shown(progress)} is not allowed: use True for a bar, or a function."
        )
    named = _named_agents(agents)
    labels = [label for label, _ in named]
    for label in given:
        if label not in labels:
            raise FeelgoodError(
                f"settings are given for {shown(label)}, which is not in this run: "
                f"use one of {', '.join(dict.fromkeys([*labels, 'testbed']))}."
            )
    if preset is not None:  # objects have their settings; the preset must exist all the same
        preset_settings(parse_name("preset", preset), "lints", name, problem.spec, horizon)
    variants: list[_Variant] = []
    for label, agent in named:
        values = given.get(label, {})
        if isinstance(agent, str):
            values = _with_preset(preset, agent, values, name, problem.spec, horizon)
        variants += _variants(agent, values, label)
    groups = _by_program(_told_apart(variants))
    watches: list[Along | None] = [None] * len(groups)
    if posterior_every is not None:
        from feelgood.posterior.along import check_every, measurable, posterior_watch, require_some

        watch = posterior_watch(check_every(posterior_every, horizon), name, problem)
        watches = [watch if measurable(g[0].policy, name, problem) else None for g in groups]
        require_some((g[0].agent for g in groups), any(watches))
    keep_compiled_programs()
    return _run_groups(name, problem, problem_settings, groups, watches, horizon, chosen, progress)


def _by_program(variants: list[_Variant]) -> list[list[_Variant]]:
    """Neighbours of one name that differ in numbers only: each group is one program."""
    groups: list[list[_Variant]] = []
    for _, neighbours in itertools.groupby(variants, key=lambda v: v.agent):
        by_shape: dict[Any, list[_Variant]] = {}
        for variant in neighbours:
            leaves, structure = jax.tree.flatten(variant.policy)
            shapes = tuple((np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves)
            by_shape.setdefault((structure, shapes), []).append(variant)
        groups += by_shape.values()
    return groups


@contextlib.contextmanager
def _reporting(progress: Progress) -> Iterator[Report]:
    """The function to call; with True it moves a bar that is there while the run goes on."""
    if progress is True:
        from rich.console import Console

        from feelgood.report.progress_bar import progress_bar

        with progress_bar(Console(stderr=True)) as report:
            yield report
    else:
        yield progress or (lambda label, done, total: None)


def _run_groups(
    name: str,
    problem: Testbed,
    problem_settings: Values,
    groups: list[list[_Variant]],
    watches: list[Along | None],
    horizon: int,
    chosen: tuple[int, ...],
    progress: Progress,
) -> Iterator[AgentResult]:
    with _reporting(progress) as report:
        for group, watch in zip(groups, watches, strict=True):
            yield from _run_group(
                name, problem, problem_settings, group, watch, horizon, chosen, report
            )


def _run_group(
    name: str,
    problem: Testbed,
    problem_settings: Values,
    group: list[_Variant],
    watch: Along | None,
    horizon: int,
    chosen: tuple[int, ...],
    report: Report,
) -> Iterator[AgentResult]:
    """Run the variants of one program together."""
    label = group[0].agent
    total = len(group) * len(chosen) * horizon
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(label, min(done, total), total)

    advance(0)
    outcome = simulate(
        problem,
        [v.policy for v in group],
        rounds=horizon,
        seeds=chosen,
        progress=advance,
        along=watch,
    )
    for g, variant in enumerate(group):
        yield AgentResult(
            agent=variant.agent,
            testbed=name,
            settings=variant.settings,
            testbed_settings=problem_settings,
            rounds=horizon,
            seeds=chosen,
            final_regret=outcome.final_regret[g],
            simple_regret=outcome.simple_regret[g],
            best_arm_rate=outcome.best_arm_rate[g],
            arm_counts=outcome.arm_counts[g],
            curve_rounds=outcome.grid,
            curve=outcome.curve[g],
            health={k: v[g] for k, v in outcome.health.items()},
            ess=outcome.ess[g],
            posterior=measured_posterior(outcome, g),
            diverged_at=outcome.diverged_at[g],
            compile_s=outcome.compile_s,
            run_s=outcome.run_s,
        )


def measured_posterior(outcome: Outcome, setting: int) -> PosteriorAlong | None:
    """The measures along the runs of one setting; None where none were asked for."""
    if not outcome.along:
        return None
    from feelgood.posterior.along import collect

    values = {name: values[setting] for name, values in outcome.along.items()}
    return collect(outcome.along_rounds, values)


def run(
    testbed: str | Testbed | Any,
    agents: Agents,
    *,
    rounds: int | Any | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, Values] | Any | None = None,
    preset: str | Any | None = None,
    posterior_every: int | Any | None = None,
    progress: Progress = None,
) -> RunResult:
    """Run agents on a testbed and return everything that was measured.

    **Arguments:**

    - `testbed`: a name such as `"linear-20"`, or a `Testbed`.
    - `agents`: a name such as `"lints"`, a `Policy` object, a list of such, or a dictionary that
      gives each the name to show, such as `{"cold": Boltzmann(0.1), "hot": Boltzmann(2.0)}`.
    - `rounds`: how many; by default the testbed's usual horizon.
    - `seeds`: `N` for 0 … N − 1, `"A:B"`, or a list or array of them. Every agent meets the
      same contexts and the same noise for a seed, so differences between agents are paired.
    - `settings`: `{"agent": {"key": value}}`; a list or array of values is a sweep, run as one
      program where the setting is a number. `{"testbed": {...}}` sets the testbed's.
    - `preset`: `"paper"` for the paper's settings of these agents on this testbed; `settings`
      given by hand win over it.
    - `posterior_every`: compare every agent's draws with its exact posterior every so many rounds
      (linear testbeds with Gaussian noise; agents that draw no parameters have none); the run
      stays the same.
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
