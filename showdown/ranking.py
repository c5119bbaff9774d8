"""The ranking: all agents, each tuned on the same budget, compared on other seeds."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.core.numbers import p_text
from feelgood.engine.results import AgentResult
from feelgood.report.aggregates import regret_interval
from feelgood.report.charts.final import final_intervals
from feelgood.report.ranking import common_seeds, compare_results, rank_results, values_at
from feelgood.stats.holm import holm
from feelgood.stats.ranks import Ranking, rank_across
from showdown.book import Book, folded, grid, section
from showdown.effects import FEWEST_SEEDS, enumeration, estimate, interval, number, signed
from showdown.searching import Row
from showdown.shelf import devices_of, settings_text

STUDY = "ranking"
NOT_YET = "Nothing of this has been run: `feelgood study run studies/ranking.toml` does it."
METHOD = """Every agent gets the same budget on every testbed: {budget} settings. The first is what
it has out of the box; the others are spread evenly over the ranges that its parts declare. The one
with the lowest mean regret on held-out seeds ({held_out}) is compared on seeds that no search has
seen. What was tried is in [`searches.csv`](../../results/searches.csv), and
[studies](../studies.md#tuning) says how it is chosen."""
READING = """*Beside the best* is the paired difference in mean final regret from the lowest mean of
the testbed. p is that of its t-test, corrected for the number of agents by Holm's rule. The best is
named by the same seeds, which that correction does not know of. *May be the best* does: an agent
leaves that set if another one has a lower mean with p ≤ 0.05/(k − 1) in a paired t-test, with k
agents. A truly best agent leaves it with probability at most 2.5 %. Brackets hold 95 %
intervals."""


def page(book: Book, searched: Sequence[Row]) -> str:
    """The page."""
    head = ["# Ranking", "[All questions and answers](README.md)"]
    results = book.shelf.of(STUDY)
    if not results:
        return "\n\n".join([*head, NOT_YET]) + "\n"
    own = [row for row in searched if row["study"] == STUDY]
    testbeds = list(dict.fromkeys(r.testbed for r in results))
    parts = [
        *head,
        _method(own),
        READING,
        section("Over all testbeds", _overall(results)),
        *(_testbed([r for r in results if r.testbed == t], own) for t in testbeds),
        section(
            "Figure",
            book.figure(
                "ranking",
                "Mean final regret of tuned agents with its 95 % interval, and single seeds.",
                lambda: final_intervals(results, log_x=True),
            ),
        ),
        section(
            "What tuning gained",
            "Regret on the held-out seeds. That of the chosen setting is too good, because it was "
            "chosen by it; the tables above are not. *At an end* means that no larger, or no "
            "smaller, value was tried: a wider range may hold a better one.",
            folded("Every search", _searches(own)),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _method(rows: Sequence[Row]) -> str:
    """The budget; several where a study was changed between runs."""
    sizes: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["testbed"], row["agent"])
        sizes[key] = max(sizes.get(key, 0), row["candidate"] + 1)
    # Agents with nothing to tune have one candidate, whatever the budget is.
    budget = max(sizes.values(), default=0)
    told = dict.fromkeys(
        f"{row['seeds']} from {row['first_seed']:,} on, {row['rounds']:,} rounds" for row in rows
    )
    return METHOD.format(budget=budget, held_out=enumeration(list(told) or ["none"]))


def _overall(results: Sequence[AgentResult]) -> str:
    """Mean ranks over all testbeds, of the agents that were run on all of them."""
    ranking = overall(results)
    if ranking is None:
        return "There is too little to rank: some agents or seeds are missing."
    header = ("agent", "mean rank", "p", "may be the best", "diverged chains")
    rows = [
        [
            f"`{s.name}`",
            f"{s.mean:.2f}",
            p_text(s.p),
            "yes" if s.may_be_best else "no",
            str(s.diverged),
        ]
        for s in ranking.standings
    ]
    left = sorted({r.agent for r in results} - {s.name for s in ranking.standings})
    missing = (
        f" Not run on all of them: {enumeration([f'`{name}`' for name in left])}." if left else ""
    )
    said = (
        f"Agents are ranked on every testbed seed by seed and the ranks averaged, so that every "
        f"testbed counts alike; {ranking.seeds} seeds.{missing}"
    )
    return f"{said}\n\n{grid(header, rows)}"


def overall(results: Sequence[AgentResult]) -> Ranking | None:
    """The ranking by mean rank of all agents that are on all testbeds; None for too little."""
    by_testbed: dict[str, dict[str, AgentResult]] = {}
    for r in results:
        by_testbed.setdefault(r.testbed, {})[r.agent] = r
    agents = sorted(set.intersection(*(set(own) for own in by_testbed.values())))
    chosen = [own[name] for own in by_testbed.values() for name in agents]
    if len(agents) < 2 or len(seeds := common_seeds(chosen)) < FEWEST_SEEDS:
        return None
    return rank_across(
        {t: {a: values_at(own[a], seeds) for a in agents} for t, own in by_testbed.items()}
    )


@dataclasses.dataclass(frozen=True)
class Place:
    """One agent on one testbed."""

    result: AgentResult
    difference: str
    p: str
    may_be_best: bool


def places(results: Sequence[AgentResult]) -> list[Place]:
    """The agents of one testbed, the lowest mean regret first, those with diverged chains last."""
    by_name = {r.agent: r for r in results}
    ranking = rank_results(results)[0][results[0].testbed]
    first, *others = (by_name[s.name] for s in ranking.standings)
    pairs = [compare_results(r, first)[0] for r in others]
    corrected = holm(np.array([np.nan if pair.dropped else pair.p for pair in pairs]))
    may = {s.name: s.may_be_best for s in ranking.standings}
    out = [Place(first, "", "", may[first.agent])]
    for r, pair, p in zip(others, pairs, corrected, strict=True):
        told = "chains diverged" if pair.dropped else interval(pair)
        out.append(Place(r, told, p_text(p), may[r.agent]))
    return out


def _testbed(results: Sequence[AgentResult], searched: Sequence[Row]) -> str:
    """The table of one testbed."""
    first = results[0]
    seeds = enumeration([str(n) for n in sorted({len(r.seeds) for r in results})])
    title, said = first.testbed, f"{first.rounds:,} rounds, {seeds} seeds."
    if len(common_seeds(results)) < FEWEST_SEEDS or len(results) < 2:
        return section(title, f"{said} That is too little to rank.")
    names = _searched_names(searched)
    rows = []
    for place in places(results):
        r = place.result
        diverged = len(r.seeds) - r.regret.count
        mean = estimate(regret_interval(r))
        rows.append(
            [
                f"`{r.agent}`",
                settings_text(r, names.get((r.testbed, r.agent), ())) or "as it is",
                f"{mean} ({diverged} diverged)" if diverged else mean,
                place.difference,
                place.p,
                "yes" if place.may_be_best else "no",
            ]
        )
    header = ("agent", "settings", "mean regret", "beside the best", "p (Holm)", "may be the best")
    machines = f"Run on {enumeration(devices_of(results))}."
    return section(title, f"{said} {machines}", grid(header, rows, numbers=2))


def _searched_names(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The settings that were searched, by testbed and agent."""
    return {(row["testbed"], row["agent"]): tuple(row["searched"]) for row in rows}


def _searches(rows: Sequence[Row]) -> str:
    """One line per search: what was chosen, and how it did beside the agent as it is."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["testbed"], row["agent"]), []).append(row)
    lines = []
    for (testbed, agent), own in groups.items():
        best = next(row for row in own if row["best"])
        start = own[0]
        gained = "as it is"
        if best["candidate"]:
            gained = signed(_or_nan(best["difference"]))
            ends = (signed(_or_nan(best[f"difference_{end}"])) for end in ("low", "high"))
            gained += f" [{', '.join(ends)}]"
        lines.append(
            [
                testbed,
                f"`{agent}`",
                ", ".join(f"{k} = {v:g}" for k, v in best["searched"].items()) or "–",
                ", ".join(_at_an_end(best, own)),
                number(_or_nan(start["regret"])),
                number(_or_nan(best["regret"])),
                gained,
                str(sum(row["diverged"] > 0 for row in own)),
            ]
        )
    header = (
        *("testbed", "agent", "chosen", "at an end", "as it is", "chosen"),
        *("difference", "candidates with diverged chains"),
    )
    return grid(header, lines, numbers=4)


def _at_an_end(best: Row, own: Sequence[Row]) -> list[str]:
    """The settings whose chosen value is the smallest or the largest that was tried."""
    tried = {name: [row["searched"][name] for row in own] for name in best["searched"]}
    chosen = best["searched"]
    return [name for name, values in tried.items() if chosen[name] in (min(values), max(values))]


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
