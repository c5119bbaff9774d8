"""What to use by default, and what it costs."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import regret_interval
from feelgood.report.chain_costs import chain_cost
from feelgood.report.ranking import common_seeds, values_at
from feelgood.stats.ranks import Ranking, rank_across
from showdown import posterior
from showdown.book import Book, folded, grid, items, section
from showdown.effects import (
    FEWEST_SEEDS,
    Word,
    capital,
    effect,
    enumeration,
    estimate,
    number,
    summary,
    table,
    testbeds_text,
)
from showdown.questions import NOT_RUN
from showdown.shelf import devices_of, settings_text


class Part(NamedTuple):
    """Testbeds that are ranked together: how their names begin, and the study that ran them."""

    title: str
    begins: str
    study: str

    def results(self, book: Book) -> list[AgentResult]:
        """What there is of it."""
        return [r for r in book.shelf.of(self.study) if r.testbed.startswith(self.begins)]


PARTS = (
    Part("linear", "linear", "question-default"),
    Part("logistic", "logistic", "question-default"),
    Part("wheel", "wheel", "question-default"),
    Part("data sets", "", "question-default-data"),
)


def default_choice(book: Book) -> str:
    """What should a practitioner use?"""
    return section(
        "What to use by default, and what does it cost?",
        "Every agent with the preset `beta-1`, which they had out of the box before they learned "
        "noise and prior. Agents are ranked on every testbed "
        "seed by seed and the ranks averaged, so that no testbed counts for more than another. "
        "The size of a difference does not count either. An agent may be the best unless a "
        "paired t-test of mean ranks says that another one is better, at level 0.05/(k − 1) with "
        "k agents.",
        items(_temperature(book)),
        *(_part(book, part) for part in PARTS),
    )


def advice(book: Book) -> list[tuple[str, str]]:
    """Every part and its recommendation."""
    return [(part.title, recommendation(part.results(book))) for part in PARTS]


#: Draws with this much of the posterior's variance are called cold, or about as wide as it.
COLD, AS_WIDE = 0.9, (0.9, 1.4)


def _temperature(book: Book) -> list[str]:
    """How hot the draws are out of the box, and what others would do, testbed by testbed."""
    by_default = book.shelf.of("question-default")
    ids = {id(r) for r in by_default}
    out = []
    for testbed in dict.fromkeys(r.testbed for r in posterior.measured_runs(book)):
        ratios = [
            (r, posterior.variance_ratio(r))
            for r in posterior.measured_runs(book)
            if r.testbed == testbed
        ]
        hot = [f"`{r.agent}` {posterior.times(v)}" for r, v in ratios if id(r) in ids]
        if hot:
            out.append(
                f"On {testbed} the draws at `beta-1` have this much of the posterior's "
                f"variance: {enumeration(hot)}."
            )
        low, high = AS_WIDE
        wide = [f"{_setting(r)}: {_mean(r)}" for r, v in ratios if low <= v <= high]
        if wide:
            out.append(
                f"Regrets on {testbed} with {low:g} to {high:g} times the posterior's variance: "
                f"{'; '.join(wide)}."
            )
        cheap = [r for r in by_default if (r.testbed, r.agent) == (testbed, "linucb")]
        cold = [effect(_setting(r), r, c) for c in cheap for r, v in ratios if v < COLD]
        if cold:
            subject = f"Draws with less than {COLD:g} times the posterior's variance, beside"
            out.append(summary(f"{subject} `linucb` on {testbed}", cold))
    return out


def _setting(r: AgentResult) -> str:
    told = settings_text(r, ("beta", "lam", "steps")) or settings_text(r, ("eta",))
    return f"`{r.agent}`, {told}"


def _mean(r: AgentResult) -> str:
    mean = regret_interval(r)
    return f"{estimate(mean)} ({mean.count} seeds)"


def _part(book: Book, part: Part) -> str:
    results = part.results(book)
    ranking = overall(results)
    said = recommendation(results)
    title = capital(part.title)
    if ranking is None:
        return section(title, said, depth=3)
    return section(
        title,
        said,
        _left_out(results),
        _regrets(results, ranking),
        folded("Each beside the first, by pairs", _beside_first(results, ranking)),
        folded("Microseconds per round and chain", _costs(results, ranking)),
        depth=3,
    )


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
    names = [f"`{name}`" for name in best]
    agents = f"{len(ranking.standings)} agents"
    said = (
        f"{testbeds_text(list(groups))}; {agents}, {ranking.seeds} seeds, level {ranking.level:g}"
    )
    if not best:
        return f"No agent can be recommended: all have diverged chains ({said})."
    if len(best) == 1:
        return f"{names[0]} has the lowest mean rank ({said}){_cost_text(groups, best[0])}."
    chosen = f"No single winner: {enumeration(names)} may be the best ({said})."
    if 2 * len(best) > len(ranking.standings):
        chosen = f"They can hardly be told apart: {len(best)} of them may be the best ({said})."
    lowest = f"{names[0]} has the lowest mean rank{_cost_text(groups, best[0])}"
    alike = _alike(groups, best)
    if len(alike) < 2:
        return f"{chosen} {lowest}."
    cheapest = min(alike, key=lambda name: _seconds(groups, name))
    return (
        f"{chosen} {lowest}. Of those that no testbed shows to be worse and that ran on the same "
        f"machines, the cheapest is `{cheapest}`{_cost_text(groups, cheapest)}."
    )


def _alike(groups: dict[str, dict[str, AgentResult]], best: Sequence[str]) -> list[str]:
    """The most that ran on the same machines, of those nowhere seen to be worse than the first."""
    by_machines: dict[tuple[str, ...], list[str]] = {}
    for name in best:
        pairs = [(group[name], group[best[0]]) for group in groups.values()]
        if name == best[0] or all(effect("", a, b).word is not Word.HURTS for a, b in pairs):
            machines = tuple(enumeration(devices_of([own])) for own, _ in pairs)
            by_machines.setdefault(machines, []).append(name)
    return max(by_machines.values(), key=len)


def _seconds(groups: dict[str, dict[str, AgentResult]], agent: str) -> float:
    return sum(chain_cost(group[agent]).seconds for group in groups.values())


def _cost_text(groups: dict[str, dict[str, AgentResult]], agent: str) -> str:
    """`; a round costs 2 µs per chain on CPU`, where all its runs were on one machine."""
    runs = [group[agent] for group in groups.values()]
    devices = devices_of(runs)
    if len(devices) > 1:
        return ""
    rounds = sum(r.rounds for r in runs)
    gradients = [chain_cost(r).gradients for r in runs]
    known = [g for g in gradients if g is not None]
    tail = f" and {sum(known) / rounds:.0f} gradients" if len(known) == len(runs) else ""
    micro = number(1e6 * _seconds(groups, agent) / rounds)
    return f"; a round costs {micro} µs{tail} per chain on {devices[0]}"


def _regrets(results: Sequence[AgentResult], ranking: Ranking) -> str:
    groups = _contenders(results)
    rows = []
    for standing in ranking.standings:
        means = [regret_interval(group[standing.name]) for group in groups.values()]
        rows.append(
            [
                f"`{standing.name}`",
                f"{standing.mean:.2f}",
                "yes" if standing.may_be_best else "no",
                *map(estimate, means),
            ]
        )
    header = ("agent", "mean rank", "may be the best", *groups)
    return grid(header, rows) + (
        f"\n\nMean final regrets with 95 % intervals, {ranking.seeds} seeds."
    )


def _beside_first(results: Sequence[AgentResult], ranking: Ranking) -> str:
    """Paired differences to the agent of the lowest mean rank."""
    first, *others = (standing.name for standing in ranking.standings)
    groups = _contenders(results)
    return table(
        [
            effect(f"beside `{first}`", group[name], group[first])
            for group in groups.values()
            for name in others
        ]
    )


def _costs(results: Sequence[AgentResult], ranking: Ranking) -> str:
    groups = _contenders(results)
    rows = []
    for standing in ranking.standings:
        runs = [group[standing.name] for group in groups.values()]
        rows.append([f"`{standing.name}`", *(_cost(r) for r in runs)])
    return grid(("agent", *groups), rows) + (
        "\n\nTimes of different machines cannot be compared; other runs were made beside these."
    )


def _cost(r: AgentResult) -> str:
    seconds = chain_cost(r).seconds / r.rounds
    return f"{number(1e6 * seconds)} ({enumeration(devices_of([r]))})"
