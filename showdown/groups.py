"""One page per group of testbeds: ours beside the published, figures, and what they show."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.paper.published_rows import TITLES
from feelgood.report.charts.curves import regret_curves
from feelgood.report.charts.final import final_intervals
from feelgood.report.charts.published import beside_published
from feelgood.report.published_comparisons import PublishedComparison, PublishedVerdict
from feelgood.report.published_tables import to_markdown
from feelgood.report.ranking import rank_results
from showdown.book import Book, items, section
from showdown.effects import FEWEST_SEEDS, enumeration
from showdown.published import comparisons, share_sentence, unexplained
from showdown.questions import DATA


@dataclasses.dataclass(frozen=True)
class Group:
    """Testbeds that share a page."""

    name: str
    title: str
    about: str
    testbeds: tuple[str, ...]


#: Curves of agents with so many times the lowest regret would flatten all others.
FAR = 10.0
GROUPS = (
    Group(
        "linear",
        "Linear bandits",
        "5 arms × 4 dimensions (linear-20) and 5 × 8 (linear-40), Gaussian rewards.",
        ("linear-20", "linear-40"),
    ),
    Group(
        "logistic",
        "Logistic bandits",
        "50 arms with contexts of length 1, Bernoulli rewards.",
        ("logistic-20", "logistic-40"),
    ),
    Group(
        "wheel",
        "Wheel bandits",
        "A safe arm everywhere, one rich arm per quadrant outside the radius δ.",
        ("wheel-0.01", "wheel-0.1", "wheel-0.5", "wheel-0.99"),
    ),
    Group(
        "neural",
        "Neural bandits",
        "Ten data sets turned into bandits, agents with networks.",
        DATA,
    ),
)


def group_page(book: Book, group: Group) -> str:
    """The page of a group."""
    found = [c for c in comparisons(book.shelf) if c.row.testbed in group.testbeds]
    parts = [f"# {group.title}", group.about, "[All questions and answers](README.md)"]
    parts.append(section("What it shows", items([share_sentence(found), *_rankings(book, group)])))
    parts.append(section("Different for no known reason", unexplained(found)))
    parts += _figures(book, group)
    for table in TITLES:
        own = [c for c in found if c.row.published.table == table]
        if own:
            parts.append(section(TITLES[table], _table(own, table)))
    return "\n\n".join(parts) + "\n"


def _table(found: Sequence[PublishedComparison], table: str) -> str:
    if all(c.verdict is PublishedVerdict.NOT_RUN for c in found):
        return f"`feelgood reproduce {table}`: none of its {len(found)} numbers was run."
    return f"`feelgood reproduce {table}`\n\n" + to_markdown(found, TITLES[table]).strip()


def _at_paper(book: Book, group: Group) -> list[AgentResult]:
    """One result for each agent and testbed: that at "β = 10³" of the group's own tables."""
    out: dict[tuple[str, str], AgentResult] = {}
    for i, found in enumerate(comparisons(book.shelf)):
        result = book.shelf.by_number.get(i)
        if result is not None and _in_main(found, group):
            out.setdefault((result.testbed, result.agent), result)
    return list(out.values())


def _in_main(comparison: PublishedComparison, group: Group) -> bool:
    """Whether it is in the table of all agents on one of the group's testbeds, at "β = 10³"."""
    published = comparison.row.published
    tables = ("main", "wheel", "neural-cumulative", "neuralts-cumulative")
    return published.testbed in group.testbeds and published.table in tables and published.beta != 1


def _rankings(book: Book, group: Group) -> list[str]:
    """Who may be the best at the paper's settings, testbed by testbed."""
    sentences = []
    results = _at_paper(book, group)
    for testbed in group.testbeds:
        own = [r for r in results if r.testbed == testbed]
        if len(own) < 2:
            continue
        ranking = rank_results(own)[0][testbed]
        if ranking.seeds < FEWEST_SEEDS:
            sentences.append(
                f"{testbed}: {ranking.seeds} seeds are too few to say who is the best."
            )
        else:
            sentences.append(f"{testbed}, agents at the paper's settings: {ranking.verdict}")
        if alike := _alike(own):
            sentences.append(f"{testbed}, the same regret on every seed: {'; '.join(alike)}.")
    run = {
        c.row.testbed for c in comparisons(book.shelf) if c.verdict is not PublishedVerdict.NOT_RUN
    }
    absent = [t for t in group.testbeds if t not in run]
    return [*sentences, f"Not run: {enumeration(absent)}."] if absent else sentences


def _alike(results: Sequence[AgentResult]) -> list[str]:
    """Agents that made the same choices as far as regret can tell."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for r in results:
        if np.isfinite(r.final_regret).all():
            groups.setdefault((r.seeds, r.final_regret.tobytes()), []).append(r.agent)
    return [enumeration(names) for names in groups.values() if len(names) > 1]


def _figures(book: Book, group: Group) -> list[str]:
    results = _at_paper(book, group)
    if not results:
        return []
    beside = [c for c in comparisons(book.shelf) if _in_main(c, group) and c.ours is not None]
    return [
        section(
            "Figures",
            book.figure(
                f"{group.name}-published",
                "Ours beside the published, mean ± standard deviation; faint where the two cannot "
                "be compared.",
                lambda: beside_published(beside),
            ),
            book.figure(
                f"{group.name}-curves",
                "Mean cumulative regret along the run; bands hold 10 to 90 % of the seeds. Left "
                f"out: agents with more than {FAR:g} times the lowest regret, and smoothed ones.",
                lambda: regret_curves(_near(results)),
            ),
            book.figure(
                f"{group.name}-final",
                "Mean final regret with its 95 % interval, and single seeds.",
                lambda: final_intervals(results, log_x=True),
            ),
        )
    ]


def _near(results: Sequence[AgentResult]) -> list[AgentResult]:
    """Results that one scale can show. A smoothed bonus at b = 1000 is drawn as the plain one."""
    lowest = {
        t: min(r.regret.mean for r in results if r.testbed == t and r.regret.count)
        for t in {r.testbed for r in results if r.regret.count}
    }
    return [
        r
        for r in results
        if "sfg" not in r.agent and r.regret.count and r.regret.mean <= FAR * lowest[r.testbed]
    ]
