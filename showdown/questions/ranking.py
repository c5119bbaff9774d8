"""The ranking: all agents, each tuned on the same budget, compared on other seeds."""

from collections.abc import Sequence
from typing import Any

from feelgood.report.charts.final import final_intervals
from showdown.book import Book, section
from showdown.families import Family
from showdown.places import READING, by_testbed, matrix, overall
from showdown.question import NOT_RUN, Question
from showdown.wording import enumeration
from showdown.yardsticks import part, those_of

STUDY = "ranking"


def says(book: Book, families: Sequence[Family]) -> list[str]:
    """How many may be the best, testbed by testbed, and who over all; the table has the names."""
    results = book.shelf.of(STUDY)
    found = by_testbed(book, STUDY)
    out = []
    for testbed, own in found.items():
        best = sum(p.may_be_best for p in own)
        seeds = min(len(p.result.seeds) for p in own)
        out.append(
            f"{testbed}: {best} of {len(own)} may be the best ({seeds} seeds); lowest mean: "
            f"`{own[0].result.agent}`."
        )
    ranking = overall(results)
    if ranking is not None:
        named = [f"`{s.name}`" for s in ranking.standings if s.may_be_best]
        out.append(f"Over all of them, by mean rank: {enumeration(named)} may be the best.")
    return out or [NOT_RUN]


def more(book: Book) -> list[str]:
    """The matrix, the figure, the method, and yardsticks."""
    results = book.shelf.of(STUDY)
    found = by_testbed(book, STUDY)
    if not found:
        return []
    picture = book.figure(
        "ranking",
        "Mean final regret of tuned agents with its 95 % interval, and single seeds.",
        lambda: final_intervals(results, log_x=True),
    )
    sticks = those_of(results, book.yardsticks)
    parts = [
        section("Regrets", matrix(book, found, overall(results)), READING),
        section("How agents were tuned", tuning_text(book.searched)),
        section("Figure", picture),
    ]
    return [*parts, *part(sticks)]


def tuning_text(searched: Sequence[dict[str, Any]]) -> str:
    """The budget of the searches, and how many ended at an end of their range."""
    rows = [row for row in searched if row["study"] == STUDY]
    best = [row for row in rows if row["best"]]
    budget = max((row["candidate"] + 1 for row in rows), default=0)
    held_out = {(row["seeds"], row["first_seed"], row["rounds"]) for row in rows}
    told = enumeration(
        [f"{n} seeds from {first:,} on, {rounds:,} rounds" for n, first, rounds in sorted(held_out)]
        or ["none"]
    )
    ends = sum(_at_an_end(row, rows) for row in best)
    return (
        f"Every agent has the same budget on every testbed: {budget} settings, the first of which "
        "is that out of the box. The others are spread over the ranges that its parts declare. The "
        f"lowest mean regret on held-out seeds ({told}) decides. It is compared on seeds that no "
        f"search has seen. Of {len(best)} choices {ends} lie at an end of their range, so that a "
        "wider range may hold better ones. [Every candidate](../../results/searches.csv), "
        "[every place](../../results/pairs/ranking.csv), [how tuning works](../studies.md#tuning)."
    )


def _at_an_end(best: dict[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a chosen value is the smallest or the largest that was tried."""
    own = [r for r in rows if (r["testbed"], r["agent"]) == (best["testbed"], best["agent"])]
    tried = {name: [row["searched"][name] for row in own] for name in best["searched"]}
    return any(best["searched"][n] in (min(v), max(v)) for n, v in tried.items())


QUESTION = Question(
    name="ranking",
    place=100,
    title="Which agent is the best when all are tuned alike?",
    asks=(
        "Every agent of the study is tuned on the same budget on every testbed, then compared on "
        "100 other seeds. A setting that was chosen by a seed is never judged by it."
    ),
    studies=(STUDY,),
    says=says,
    more=more,
)
