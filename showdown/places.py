"""Who may be the best: agents on one testbed, and over several."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.report.ranking import common_seeds, rank_results, values_at
from feelgood.stats.holm import holm
from feelgood.stats.intervals import Estimate, bca
from feelgood.stats.ranks import Ranking, rank_across
from showdown import yardsticks
from showdown.book import Book, grid
from showdown.effects import FEWEST_SEEDS, Effect, effect, regret_text


@dataclasses.dataclass(frozen=True)
class Place:
    """One agent on one testbed, beside the one with the lowest mean there."""

    result: AgentResult
    mean: Estimate
    #: None for the lowest itself.
    beside: Effect | None
    p: float
    may_be_best: bool
    #: Those that all agents of the testbed have: the others' numbers are not comparable.
    seeds: tuple[int, ...]


def places(results: Sequence[AgentResult]) -> list[Place]:
    """The agents of one testbed, the lowest mean regret first, those with diverged chains last.

    Nothing where there are too few seeds or agents.
    """
    if len(results) < 2 or len(seeds := common_seeds(results)) < FEWEST_SEEDS:
        return []
    by_name = {r.agent: r for r in results}
    ranking = rank_results(results)[0][results[0].testbed]
    first, *others = (by_name[s.name] for s in ranking.standings)
    pairs = [effect("beside the lowest", r, first) for r in others]
    raw = np.array([e.difference.p if e.tested and e.difference else np.nan for e in pairs])
    may = {s.name: s.may_be_best for s in ranking.standings}
    mean = {r.agent: bca(values_at(r, seeds)) for r in results}
    out = [Place(first, mean[first.agent], None, float("nan"), may[first.agent], seeds)]
    for r, e, p in zip(others, pairs, holm(raw), strict=True):
        out.append(Place(r, mean[r.agent], e, float(p), may[r.agent], seeds))
    return out


def by_testbed(book: Book, study: str) -> dict[str, list[Place]]:
    """The places on every testbed of a study that has enough."""
    results = book.shelf.of(study)
    testbeds = dict.fromkeys(r.testbed for r in results)

    def found() -> dict[str, list[Place]]:
        every = {t: places([r for r in results if r.testbed == t]) for t in testbeds}
        return {t: own for t, own in every.items() if own}

    return book.once(f"places of {study}", found)


def overall(results: Sequence[AgentResult]) -> Ranking | None:
    """The ranking by mean rank of all agents that are on all testbeds; None for too little."""
    groups: dict[str, dict[str, AgentResult]] = {}
    for r in results:
        groups.setdefault(r.testbed, {})[r.agent] = r
    if not groups:
        return None
    agents = sorted(set.intersection(*(set(own) for own in groups.values())))
    chosen = [own[name] for own in groups.values() for name in agents]
    if len(agents) < 2 or len(seeds := common_seeds(chosen)) < FEWEST_SEEDS:
        return None
    return rank_across(
        {t: {a: values_at(own[a], seeds) for a in agents} for t, own in groups.items()}
    )


def matrix(book: Book, found: dict[str, list[Place]], ranking: Ranking | None) -> str:
    """Mean regrets, one row per agent and one column per testbed; bold: it may be the best."""
    order = [s.name for s in ranking.standings] if ranking else []
    rest = sorted({p.result.agent for own in found.values() for p in own} - set(order))
    mean_rank = {s.name: f"{s.mean:.1f}" for s in ranking.standings} if ranking else {}
    rows = []
    for agent in [*order, *rest]:
        cells = []
        for own in found.values():
            here = [p for p in own if p.result.agent == agent]
            cells.append(_cell(book, here[0]) if here else "–")
        rows.append([f"`{agent}`", mean_rank.get(agent, "–"), *cells])
    return grid(("agent", "mean rank", *found), rows)


def _cell(book: Book, place: Place) -> str:
    """Mean and median; bold for one that may be the best, a dagger where a fixed arm beats it."""
    mark = yardsticks.dagger(place.result, book.yardsticks)
    text = regret_text(place.result, mark, place.seeds)
    return f"**{text}**" if place.may_be_best else text


READING = (
    "Mean final regrets, with medians in brackets. **Bold**: the agent may be the best of its "
    "testbed. † The best fixed arm has no higher regret. An agent leaves the set of possible bests "
    "if another one has a lower mean with p ≤ 0.05/(k − 1) in a paired t-test, with k agents. "
    "*Mean rank* averages the ranks on all testbeds, seed by seed."
)
