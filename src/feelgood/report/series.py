"""Names for results, and the sweeps among them: what charts, tables and the page agree on."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.results import AgentResult


@dataclasses.dataclass(frozen=True)
class Series:
    """A result with the names it is shown under.

    `label` is the agent with the settings in which it differs from the same agent's other results
    on the same problem; `problem` is the testbed, told apart from its other forms the same way.
    """

    label: str
    problem: str
    result: AgentResult


def show_value(value: Any) -> str:
    """A setting's value in few characters."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_settings(settings: Mapping[str, Any]) -> str:
    """`key=value, …` of these settings."""
    return ", ".join(f"{key}={show_value(value)}" for key, value in settings.items())


def _differing(mine: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The entries of `mine` that some of the others lack or have otherwise."""
    return {k: v for k, v in mine.items() if any(k not in o or o[k] != v for o in others)}


def _problem_of(result: AgentResult) -> dict[str, Any]:
    return {"rounds": result.rounds, **result.testbed_settings}


def _numbered(names: Sequence[str]) -> list[str]:
    """The names; those that come again get a number, so that all are different."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return out


def name_series(results: Sequence[AgentResult]) -> list[Series]:
    """Every result with its names; a label is unique within its problem."""
    problems = []
    for result in results:
        others = [_problem_of(r) for r in results if r.testbed == result.testbed]
        extra = show_settings(_differing(_problem_of(result), others))
        problems.append(" ".join(filter(None, [result.testbed, extra])))
    labels = [""] * len(results)
    for problem in dict.fromkeys(problems):
        members = [i for i, p in enumerate(problems) if p == problem]
        names = []
        for i in members:
            mine = results[i]
            same = [results[j].settings for j in members if results[j].agent == mine.agent]
            extra = show_settings(_differing(mine.settings, same))
            names.append(" ".join(filter(None, [mine.agent, extra])))
        for i, name in zip(members, _numbered(names), strict=True):
            labels[i] = name
    return [Series(*row) for row in zip(labels, problems, results, strict=True)]


def ordered_labels(series: Sequence[Series]) -> list[str]:
    """All labels, those with the lower regret first: by mean rank over the problems they are in."""
    ranks: dict[str, list[float]] = {}
    for problem in dict.fromkeys(s.problem for s in series):
        members = [s for s in series if s.problem == problem]
        means = np.array([s.result.regret.mean for s in members])
        order = np.argsort(np.where(np.isfinite(means), means, np.inf), kind="stable")
        for place, i in enumerate(order):
            ranks.setdefault(members[i].label, []).append(place / max(len(members) - 1, 1))
    return sorted(ranks, key=lambda label: float(np.mean(ranks[label])))


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Results of one agent on one problem that differ in `axes` and in nothing else.

    One axis is a line, two are a heat map.
    """

    name: str
    agent: str
    problem: str
    axes: tuple[str, ...]
    members: tuple[Series, ...]


def find_sweeps(series: Sequence[Series]) -> list[Sweep]:
    """All sweeps over one or two settings, everything else being equal.

    Settings that change together, such as a step size that follows the temperature, are no sweep
    over either of them, and results whose chains all diverged are in none. An agent that sweeps
    two settings together gives heat maps and no lines along their rows and columns.
    """
    found: list[Sweep] = []
    series = [s for s in series if s.result.regret.count]
    for problem, agent in dict.fromkeys((s.problem, s.result.agent) for s in series):
        members = [s for s in series if (s.problem, s.result.agent) == (problem, agent)]
        everything = [s.result.settings for s in members]
        varying = list(dict.fromkeys(k for s in everything for k in _differing(s, everything)))
        maps = [
            _sweep(agent, problem, (a, b), group, varying)
            for i, a in enumerate(varying)
            for b in varying[i + 1 :]
            for group in _groups(members, (a, b), varying)
            if _is_grid(group, (a, b))
        ]
        in_maps = {(axis, s.label) for sweep in maps for axis in sweep.axes for s in sweep.members}
        lines = [
            _sweep(agent, problem, (axis,), group, varying)
            for axis in varying
            for group in _groups(members, (axis,), varying)
            if len(group) > 1 and not all((axis, s.label) in in_maps for s in group)
        ]
        found += maps + lines
    return found


def _groups(
    members: Sequence[Series], axes: tuple[str, ...], varying: Sequence[str]
) -> list[list[Series]]:
    """Members that agree in every varying setting but the axes."""
    groups: dict[tuple[str, ...], list[Series]] = {}
    for s in members:
        if all(axis in s.result.settings for axis in axes):
            rest = tuple(repr(s.result.settings.get(k)) for k in varying if k not in axes)
            groups.setdefault(rest, []).append(s)
    return list(groups.values())


def _is_grid(group: Sequence[Series], axes: tuple[str, str]) -> bool:
    """Whether both axes vary, and not only together."""
    pairs = {tuple(repr(s.result.settings[axis]) for axis in axes) for s in group}
    widths = [len({pair[i] for pair in pairs}) for i in range(2)]
    return min(widths) > 1 and len(pairs) > max(widths)


def _sweep(
    agent: str,
    problem: str,
    axes: tuple[str, ...],
    group: Sequence[Series],
    varying: Sequence[str],
) -> Sweep:
    settings = group[0].result.settings
    rest = {k: settings[k] for k in varying if k not in axes and k in settings}
    name = " ".join(filter(None, [agent, show_settings(rest)]))
    return Sweep(name, agent, problem, axes, tuple(group))
