"""What to use by default, and what it costs."""

import itertools
from collections.abc import Sequence

from feelgood.results import AgentResult
from feelgood.statistics import Ranking, common_seeds, compute_of, rank_across, values_at
from showdown.book import Book, grid, section
from showdown.effects import FEWEST_SEEDS, enumeration, number
from showdown.shelf import devices_of

NOT_RUN = "Cannot say: nothing was run for this."
#: What is ranked together, and the study that ran it.
PARTS = {
    "Linear, logistic and wheel": "question-default",
    "Data sets": "question-default-data",
}


def default_choice(book: Book) -> str:
    """What should a practitioner use?"""
    return section(
        "What to use by default, and what does it cost?",
        "Every agent with the settings it has out of the box. Agents are ranked on every testbed "
        "seed by seed and the ranks averaged, so that no testbed counts for more.",
        *(_part(book, title, study) for title, study in PARTS.items()),
    )


def advice(book: Book) -> list[tuple[str, str]]:
    """Every part and its recommendation."""
    parts = {title: book.shelf.of(study) for title, study in PARTS.items()}
    return [(title, recommendation(results)) for title, results in parts.items()]


def _part(book: Book, title: str, study: str) -> str:
    results = book.shelf.of(study)
    ranking = overall(results)
    said = recommendation(results)
    if ranking is None:
        return section(title, said, depth=3)
    return section(title, said, _left_out(results), _costs(results, ranking), depth=3)


def _contenders(results: Sequence[AgentResult]) -> dict[str, dict[str, AgentResult]]:
    """By testbed, the agents that were run on all of these testbeds with all seeds.

    Where not everything was run: the testbeds that make most comparisons, agents times testbeds.
    """
    most = max((len(r.seeds) for r in results), default=0)
    by_testbed: dict[str, dict[str, AgentResult]] = {}
    for r in results:
        if len(r.seeds) == most:
            by_testbed.setdefault(r.testbed, {})[r.agent] = r
    best: tuple[int, tuple[str, ...], set[str]] = (0, (), set())
    for count in range(len(by_testbed), 0, -1):
        for testbeds in itertools.combinations(by_testbed, count):
            agents = set.intersection(*(set(by_testbed[t]) for t in testbeds))
            if len(agents) > 1 and count * len(agents) > best[0]:
                best = (count * len(agents), testbeds, agents)
    return {t: {a: by_testbed[t][a] for a in sorted(best[2])} for t in best[1]}


def _left_out(results: Sequence[AgentResult]) -> str:
    """Testbeds and agents that have results and yet are not ranked."""
    groups = _contenders(results)
    ranked = set().union(*groups.values())
    agents = sorted({r.agent for r in results} - ranked)
    testbeds = list(dict.fromkeys(r.testbed for r in results if r.testbed not in groups))
    parts = [f"`{name}`" for name in agents] + testbeds
    if not parts:
        return ""
    return f"Not ranked, because not every run of them has been made: {enumeration(parts)}."


def overall(results: Sequence[AgentResult]) -> Ranking | None:
    """The ranking over all testbeds; None where there is too little to rank."""
    if not results:
        return None
    groups = _contenders(results)
    chosen = [r for group in groups.values() for r in group.values()]
    if len({r.agent for r in chosen}) < 2:
        return None
    seeds = common_seeds(chosen)
    if len(seeds) < FEWEST_SEEDS:
        return None
    return rank_across(
        {t: {a: values_at(r, seeds) for a, r in group.items()} for t, group in groups.items()}
    )


def recommendation(results: Sequence[AgentResult]) -> str:
    """Who may be the best, and the cheapest of those."""
    ranking = overall(results)
    if ranking is None:
        return NOT_RUN
    groups = _contenders(results)
    best = [s.name for s in ranking.standings if s.may_be_best]
    where = f"over {len(groups)} testbeds, {len(ranking.standings)} agents"
    names = [f"`{name}`" for name in best]
    said = f"{where}, {ranking.seeds} seeds, level {ranking.level:g}"
    if not best:
        return f"No agent can be recommended: all have diverged chains ({said})."
    if len(best) == 1:
        return f"{names[0]} has the lowest mean rank ({said}); {_cost_text(groups, best[0])}."
    chosen = f"No single winner: {enumeration(names)} may be the best ({said})."
    device, alike = _on_one_machine(groups, best)
    if len(alike) < 2:
        return f"{chosen} They ran on different machines: seconds are not compared."
    cheapest = min(alike, key=lambda name: _seconds(groups, name))
    cost = f"`{cheapest}`; {_cost_text(groups, cheapest)}."
    if alike == best:
        return f"{chosen} The cheapest of them is {cost}"
    return f"{chosen} Of those that ran on {device} alone, the cheapest is {cost}"


def _on_one_machine(
    groups: dict[str, dict[str, AgentResult]], agents: Sequence[str]
) -> tuple[str, list[str]]:
    """The machine on which most of these agents ran and nowhere else, and which they are."""
    alone: dict[str, list[str]] = {}
    for name in agents:
        devices = devices_of(group[name] for group in groups.values())
        if len(devices) == 1:
            alone.setdefault(devices[0], []).append(name)
    return max(alone.items(), key=lambda item: len(item[1]), default=("", []))


def _seconds(groups: dict[str, dict[str, AgentResult]], agent: str) -> float:
    return sum(compute_of(group[agent]).seconds for group in groups.values())


def _cost_text(groups: dict[str, dict[str, AgentResult]], agent: str) -> str:
    runs = [group[agent] for group in groups.values()]
    gradients = [compute_of(r).gradients for r in runs]
    known = [g for g in gradients if g is not None]
    rounds = sum(r.rounds for r in runs)
    tail = f" and {sum(known) / rounds:.0f} gradients" if len(known) == len(runs) else ""
    return f"a round costs {_micro(groups, agent)} µs{tail} a chain, averaged over the testbeds"


def _micro(groups: dict[str, dict[str, AgentResult]], agent: str) -> str:
    """Microseconds that a round of a chain takes, over all testbeds."""
    rounds = sum(group[agent].rounds for group in groups.values())
    return number(1e6 * _seconds(groups, agent) / rounds)


def _costs(results: Sequence[AgentResult], ranking: Ranking) -> str:
    groups = _contenders(results)
    rows = []
    for standing in ranking.standings:
        runs = [group[standing.name] for group in groups.values()]
        rows.append(
            [
                f"`{standing.name}`",
                f"{standing.mean:.2f}",
                "yes" if standing.may_be_best else "no",
                *(number(r.regret.mean) for r in runs),
                _micro(groups, standing.name),
                enumeration(devices_of(runs)),
            ]
        )
    header = ("agent", "mean rank", "may be the best", *groups, "µs a round", "on")
    return grid(header, rows) + (
        f"\n\nMean final regrets, {ranking.seeds} seeds. Times of different machines cannot be "
        "compared; other runs were made beside these."
    )
