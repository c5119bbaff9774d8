"""Results of several cells as one: the same run over different seeds."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from feelgood.engine import schema
from feelgood.engine.results import AgentResult, PosteriorAlong, in_fields, run_key


def merge_seeds(results: Iterable[AgentResult]) -> list[AgentResult]:
    """Results of the same agent, settings and testbed as one, seeds in order; each seed once.

    Measuring the posterior does not change a run, so a seed that was run with and without it is
    one run: the measured one.
    """
    groups: dict[tuple[str, str], list[AgentResult]] = {}
    for r in results:
        groups.setdefault((run_key(r), _code_of(r)), []).append(r)
    return [_merged(group) for group in groups.values()]


def _merged(parts: list[AgentResult]) -> AgentResult:
    if len(parts) == 1:
        return parts[0]
    place: dict[int, tuple[AgentResult, int]] = {}
    for part in sorted(parts, key=lambda p: (p.posterior is not None, len(p.seeds))):
        place.update({seed: (part, i) for i, seed in enumerate(part.seeds)})
    seeds = tuple(sorted(place))

    chains = [place[seed] for seed in seeds]
    numbers = {
        quantity.name: _stacked([(part.values_of(quantity), i) for part, i in chains])
        for quantity in schema.QUANTITIES
    }
    return dataclasses.replace(
        parts[0],
        seeds=seeds,
        **in_fields(numbers),
        posterior=_merged_posterior(chains),
        compile_s=sum(p.compile_s for p in parts),
        run_s=sum(p.run_s for p in parts),
        provenance={**parts[0].provenance, "parts": [dict(p.provenance) for p in parts]},
    )


def _stacked(chains: Sequence[tuple[Any, int]]) -> Any:
    """The entries at these places of arrays, or of dictionaries of arrays, as one."""
    first, _ = chains[0]
    if isinstance(first, Mapping):
        return {name: _stacked([(values[name], i) for values, i in chains]) for name in first}
    return np.stack([values[i] for values, i in chains])


def _merged_posterior(chains: list[tuple[AgentResult, int]]) -> PosteriorAlong | None:
    """The measures of these chains, (result, place in it) each, at all their rounds together."""
    found = [result.posterior for result, _ in chains if result.posterior is not None]
    if not found:
        return None
    rounds = np.unique(np.concatenate([one.rounds for one in found]))
    names = dict.fromkeys(name for one in found for name in one.value)
    parts = {}
    for part in ("value", "expected", "error"):
        parts[part] = {name: np.full((len(chains), len(rounds)), np.nan) for name in names}
        for row, (result, place) in enumerate(chains):
            if result.posterior is not None:
                where = np.searchsorted(rounds, result.posterior.rounds)
                for name, values in getattr(result.posterior, part).items():
                    parts[part][name][row, where] = values[place]
    return PosteriorAlong(rounds=rounds, **parts)


def _code_of(result: AgentResult) -> str:
    """Which version of a plug-in ran it."""
    return json.dumps(result.provenance.get("code"), sort_keys=True)


def newest_code(found: dict[str, AgentResult]) -> tuple[dict[str, AgentResult], list[str]]:
    """Of each agent on a testbed the runs by the newest code, and of which there are others.

    Only plug-ins have code that changes from one run to the next.
    """
    newest: dict[tuple[str, str], tuple[str, str]] = {}

    outdated = set()
    for r in found.values():
        which, mine = (r.testbed, r.agent), (str(r.provenance.get("started")), _code_of(r))
        best = newest.setdefault(which, mine)
        newest[which] = max(best, mine)
        if best[1] != mine[1]:
            outdated.add(f"{r.agent} on {r.testbed}")
    kept = {i: r for i, r in found.items() if newest[r.testbed, r.agent][1] == _code_of(r)}
    return kept, sorted(outdated)
