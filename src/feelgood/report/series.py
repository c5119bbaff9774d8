"""Names for results, and the sweeps among them: what charts, tables and the page agree on."""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from feelgood.core.numbers import setting_text
from feelgood.engine.results import AgentResult


@dataclasses.dataclass(frozen=True)
class Series:
    """A result with the names it is shown under.

    `label` is the agent, with the settings in which it differs from the same agent's other results
    on the same problem. `problem` is the testbed, with those in which it differs.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.series import name_series
    >>> settings = {"linucb": {"alpha": [0.5, 1.0]}}
    >>> result = feelgood.run("linear-20", "linucb", settings=settings, rounds=20, seeds=2)
    >>> [(s.label, s.problem) for s in name_series(result.results)]
    [('linucb α=0.5', 'linear-20'), ('linucb α=1', 'linear-20')]
    """

    label: str
    problem: str
    result: AgentResult


#: How the paper writes settings.
SYMBOLS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η"},
    **{"lam": "λ", "nu": "ν", "rho": "ρ"},
}

#: Settings that the paper's tables vary beside β.
PAPERS = ("lam", "gamma")


def show_settings(settings: Mapping[str, Any]) -> str:
    """`key=value, …` of these settings, in the paper's symbols."""
    return ", ".join(f"{SYMBOLS.get(k, k)}={setting_text(v)}" for k, v in settings.items())


def in_symbols(label: str) -> str:
    """A label as it can be typed, `linucb alpha=1`, as it is shown, `linucb α=1`."""
    return re.sub(r"\b(\w+)=", lambda m: f"{SYMBOLS.get(m[1], m[1])}=", label)


def show_axis(name: str) -> str:
    """A setting as the title of an axis: the paper's symbol, and the name to set it by."""
    return f"{SYMBOLS[name]} ({name})" if name in SYMBOLS else name


def _varying(members: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys that some of the members lack or have otherwise than others."""
    keys = dict.fromkeys(key for member in members for key in member)
    first = members[0]
    return [
        key
        for key in keys
        if any(key not in m or key not in first or m[key] != first[key] for m in members)
    ]


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


def name_series(results: Sequence[AgentResult], betas: Sequence[str | None] = ()) -> list[Series]:
    """Every result with its names; a label is unique within its problem.

    `betas` may hold the paper's β of results that are the paper's runs. Its β stands for all the
    settings that go with it, such as our inverse temperature and the step.

    **Example:**

    >>> import feelgood
    >>> from feelgood.report.series import name_series
    >>> result = feelgood.run("linear-20", ["linucb", "uniform"], rounds=20, seeds=2)
    >>> [s.label for s in name_series(result.results)]
    ['linucb', 'uniform']
    """
    problems = [""] * len(results)
    for members in _grouped(r.testbed for r in results):
        forms = [_problem_of(results[i]) for i in members]
        varying = set(_varying(forms))
        for i, form in zip(members, forms, strict=True):
            problems[i] = _name(results[i].testbed, form, varying)
    names = [""] * len(results)
    for members in _grouped((p, r.agent) for p, r in zip(problems, results, strict=True)):
        varying = set(_varying([results[i].settings for i in members]))
        own = [_name(results[i].agent, results[i].settings, varying) for i in members]
        papers = list(own)
        for place, i in enumerate(members):
            if betas and betas[i] is not None and varying - set(PAPERS):
                told = {**results[i].settings, "beta": betas[i]}
                papers[place] = _name(results[i].agent, told, varying & set(PAPERS) | {"beta"})
        count = Counter(papers)
        for i, mine, paper in zip(members, own, papers, strict=True):
            names[i] = mine if count[paper] > 1 else paper
    labels = [""] * len(results)
    for members in _grouped(problems):
        for i, name in zip(members, _numbered([names[i] for i in members]), strict=True):
            labels[i] = name
    return [Series(*row) for row in zip(labels, problems, results, strict=True)]


def _name(name: str, settings: Mapping[str, Any], varying: Set[str]) -> str:
    """A name with those of the settings that vary."""
    extra = show_settings({k: v for k, v in settings.items() if k in varying})
    return f"{name} {extra}" if extra else name


def _grouped(keys: Iterable[Hashable]) -> list[list[int]]:
    """The places of equal keys, in the order of their first ones."""
    groups: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def by_mean(series: Series) -> float:
    """A key to sort by: mean regret, results without one last."""
    final = series.result.final_regret
    finite = final[np.isfinite(final)]
    return float(np.mean(finite)) if len(finite) else math.inf


def one_curve(series: Sequence[Series]) -> list[list[str]]:
    """Labels of one problem whose runs are the same number for number, two or more together."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for s in series:
        r = s.result
        key = (r.seeds, r.curve_rounds.tobytes(), np.asarray(r.curve, np.float64).tobytes())
        groups.setdefault(key, []).append(s.label)
    return [labels for labels in groups.values() if len(labels) > 1]


def ordered_labels(series: Sequence[Series]) -> list[str]:
    """All labels, those with the lower regret first: by mean rank over the problems they are in."""
    ranks: dict[str, list[float]] = {}
    for problem in dict.fromkeys(s.problem for s in series):
        members = [s for s in series if s.problem == problem]
        order = np.argsort([by_mean(s) for s in members], kind="stable")
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
    series = [s for s in series if np.isfinite(s.result.final_regret).any()]
    for places in _grouped((s.problem, s.result.agent) for s in series):
        members = [series[i] for i in places]
        problem, agent = members[0].problem, members[0].result.agent
        varying = _varying([s.result.settings for s in members])
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
