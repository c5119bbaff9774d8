"""`feelgood.run`: agents by name or as objects, sweeps over settings, one result."""

import contextlib
import dataclasses
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

import feelgood.policies
import feelgood.testbeds  # noqa: F401  (both imports fill the registries)
from feelgood.compiling import keep_compiled_programs
from feelgood.errors import FeelgoodError
from feelgood.paper import preset_settings
from feelgood.protocols import AGENTS, TESTBEDS, Policy, Testbed
from feelgood.results import AgentResult, PosteriorAlong, RunResult
from feelgood.settings import settings_of
from feelgood.simulate import Along, Outcome, simulate
from feelgood.texts import seeds_in, whole_number
from feelgood.types import Spec

MAX_ROUNDS = 100_000_000
MAX_SEEDS = 100_000
MAX_VARIANTS = 20_000

Progress = Callable[[str, int, int], None]
Seeds = int | str | Sequence[int]
Values = Mapping[str, Any]


def parse_seeds(seeds: Seeds) -> tuple[int, ...]:
    """`10` is 0 … 9, `"A:B"` is A … B − 1, `"A,B,C"` and a sequence are themselves."""
    hint = "give a positive number N, a range A:B with 0 ≤ A < B, or a list of seeds."
    wrong = FeelgoodError(f"seeds = {seeds!r} is not allowed: {hint}")
    if isinstance(seeds, str):
        try:
            seeds = seeds_in(seeds)
        except ValueError:
            raise wrong from None
    elif isinstance(seeds, int):
        seeds = range(seeds)
    try:
        few = len(seeds) <= MAX_SEEDS
        values = tuple(operator.index(s) for s in seeds) if few else ()
    except TypeError:
        raise wrong from None
    except OverflowError:  # more than `len` can count
        few = False
    if not few:
        raise FeelgoodError(f"seeds = {seeds!r} are too many: use at most {MAX_SEEDS:,}.")
    if not values or min(values) < 0 or max(values) >= 2**32 or len(set(values)) != len(values):
        raise wrong
    return values


def parse_rounds(rounds: int | str) -> int:
    """A number of rounds that makes sense; a text such as `"10k"` or `"1e4"` is one too."""
    if isinstance(rounds, str):
        with contextlib.suppress(ValueError):
            rounds = whole_number(rounds)
    whole = not isinstance(rounds, (bool, str)) and hasattr(rounds, "__index__")
    if not whole or not 1 <= int(rounds) <= MAX_ROUNDS:
        raise FeelgoodError(f"rounds = {rounds!r} is not allowed: use 1 to {MAX_ROUNDS:,} rounds.")
    return int(rounds)


@dataclasses.dataclass(frozen=True)
class _Variant:
    """One agent with one setting, ready to run."""

    agent: str
    settings: Values
    policy: Policy


def _grid(values: Values) -> Iterator[dict[str, Any]]:
    """The cross product of all settings that are lists."""
    lists = {k: v if isinstance(v, (list, tuple)) else [v] for k, v in values.items()}
    for combination in itertools.product(*lists.values()):
        yield dict(zip(lists, combination, strict=True))


def _public(value: Any) -> Any:
    """A setting as it was given: 0.01, not the nearest float32 written out."""
    return float(str(np.float32(value))) if isinstance(value, jax.Array) else value


def _own_settings(thing: Policy | Testbed) -> dict[str, Any]:
    return {name: _public(getattr(thing, name)) for name in settings_of(type(thing))}


def _variants(which: str | Policy, values: Values) -> list[_Variant]:
    if isinstance(which, Policy):
        name = type(which).__name__
        if values:
            raise FeelgoodError(f"settings of {name} are given with the object itself.")
        return [_Variant(name, _own_settings(which), which)]
    entry = AGENTS[which]
    for name, value in values.items():
        if isinstance(value, (list, tuple)) and not value:
            raise FeelgoodError(f"{which}.{name} = [] is not allowed: give at least one value.")
    count = math.prod(len(v) for v in values.values() if isinstance(v, (list, tuple)))
    if count > MAX_VARIANTS:
        raise FeelgoodError(
            f"the grid of {which} has {count:,} settings: use at most {MAX_VARIANTS:,}."
        )
    return [_Variant(which, entry.resolve(v), entry.build(v)) for v in _grid(values)]


def _with_preset(
    preset: str | None, agent: str, values: Values, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any]:
    """The settings given, over those of the preset."""
    if preset is None:
        return dict(values)
    known = AGENTS[agent].settings
    defaults = preset_settings(preset, agent, testbed, spec, rounds)
    return {k: v for k, v in defaults.items() if k in known} | dict(values)


def resolve_variants(
    agent: str, values: Values, preset: str | None, testbed: str, spec: Spec, rounds: int
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


def build_testbed(which: str | Testbed, values: Values) -> tuple[str, Testbed, Values]:
    """A testbed with its name and settings."""
    if isinstance(which, Testbed):
        if values:
            name = type(which).__name__
            raise FeelgoodError(f"settings of {name} are given with the object itself.")
        return type(which).__name__, which, _own_settings(which)
    entry = TESTBEDS[which]
    return which, entry.build(values), entry.resolve(values)


def run_each(
    testbed: str | Testbed,
    agents: Sequence[str | Policy],
    *,
    rounds: int | str | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, Values] | None = None,
    preset: str | None = None,
    posterior_every: int | None = None,
    progress: Progress | None = None,
) -> Iterator[AgentResult]:
    """As `run`, but an iterator: what has come out of it is finished, whatever happens next.

    All input is checked at the call, before anything runs.
    """
    given = dict(settings or {})
    testbed_values = {**given.pop("testbed", {})}
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
    if not agents:
        raise FeelgoodError("no agent was named: name at least one, such as lints.")
    labels = [a if isinstance(a, str) else type(a).__name__ for a in agents]
    for label in given:
        if label not in labels:
            raise FeelgoodError(
                f"settings are given for '{label}', which is not in this run: "
                f"use one of {', '.join(dict.fromkeys([*labels, 'testbed']))}."
            )
    groups: list[list[_Variant]] = []
    for agent, label in zip(agents, labels, strict=True):
        by_shape: dict[Any, list[_Variant]] = {}
        values = {**given.get(label, {})}
        if isinstance(agent, str):
            values = _with_preset(preset, agent, values, name, problem.spec, horizon)
        for variant in _variants(agent, values):
            by_shape.setdefault(jax.tree.structure(variant.policy), []).append(variant)
        groups += by_shape.values()
    watches: list[Along | None] = [None] * len(groups)
    if posterior_every is not None:
        from feelgood.posterior.along import check_every, measurable, posterior_watch, require_some

        watch = posterior_watch(check_every(posterior_every, horizon), name, problem)
        watches = [watch if measurable(g[0].policy, name, problem) else None for g in groups]
        require_some((g[0].agent for g in groups), any(watches))
    keep_compiled_programs()
    return _run_groups(name, problem, problem_settings, groups, watches, horizon, chosen, progress)


def _run_groups(
    name: str,
    problem: Testbed,
    problem_settings: Values,
    groups: list[list[_Variant]],
    watches: list[Along | None],
    horizon: int,
    chosen: tuple[int, ...],
    progress: Progress | None,
) -> Iterator[AgentResult]:
    for group, watch in zip(groups, watches, strict=True):
        label = group[0].agent
        total = len(group) * len(chosen) * horizon
        done = 0

        def advance(count: int, label: str = label, total: int = total) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(label, min(done, total), total)

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
    testbed: str | Testbed,
    agents: Sequence[str | Policy],
    *,
    rounds: int | str | None = None,
    seeds: Seeds = 10,
    settings: Mapping[str, Values] | None = None,
    preset: str | None = None,
    posterior_every: int | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Run agents on a testbed and return everything that was measured.

    **Arguments:**

    - `testbed`: a name such as `"linear-20"`, or a `Testbed`.
    - `agents`: names such as `"lints"`, or `Policy` objects.
    - `rounds`: how many; by default the testbed's usual horizon.
    - `seeds`: `N` for 0 … N − 1, `"A:B"`, or a sequence. Every agent meets the same contexts and
      the same noise for a seed, so differences between agents are paired.
    - `settings`: `{"agent": {"key": value}}`; a list of values is a sweep, run as one program
      where the setting is a number. `{"testbed": {...}}` sets the testbed's.
    - `preset`: `"paper"` for the paper's settings of these agents on this testbed; `settings`
      given by hand win over it.
    - `posterior_every`: compare every agent's draws with its exact posterior every so many rounds
      (linear testbeds with Gaussian noise; agents that draw no parameters have none); the run
      stays the same.
    - `progress`: called with (agent, chain-rounds done, chain-rounds in all).

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
