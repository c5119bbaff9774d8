"""Which agent is the best without tuning, and what does it cost?"""

from collections.abc import Sequence

from feelgood.engine.results import AgentResult
from feelgood.report.chain_costs import chain_cost
from showdown.book import Book, section
from showdown.effects import FEWEST_SEEDS
from showdown.families import Family
from showdown.places import READING, by_testbed, matrix, overall
from showdown.question import NOT_RUN, Question
from showdown.shelf import devices_of
from showdown.wording import enumeration, number, testbeds_text
from showdown.yardsticks import part, those_of

STUDY, DATA_STUDY = "question-default", "question-default-data"
KINDS = ("linear", "logistic", "wheel")


def kind(book: Book, name: str) -> list[AgentResult]:
    """What was run on testbeds of one kind."""
    return [r for r in book.shelf.of(STUDY) if r.testbed.startswith(name)]


def says(book: Book, families: Sequence[Family]) -> list[str]:
    """Who may be the best of each kind, what it costs, and what has too few seeds."""
    out = []
    for name in KINDS:
        results = kind(book, name)
        ranking = overall(results)
        if ranking is None:
            continue
        best = [f"`{s.name}`" for s in ranking.standings if s.may_be_best]
        told = enumeration(best) if len(best) <= 6 else f"{len(best)} of {len(ranking.standings)}"
        out.append(
            f"{name}: {told} may be the best by mean rank ({ranking.seeds} seeds). Lowest: "
            f"{best[0]}{cost_text([r for r in results if f'`{r.agent}`' == best[0]])}."
        )
    data = book.shelf.of(DATA_STUDY)
    if data and max(len(r.seeds) for r in data) < FEWEST_SEEDS:
        testbeds = testbeds_text(list(dict.fromkeys(r.testbed for r in data)))
        seeds = max(len(r.seeds) for r in data)
        out.append(f"Networks on data sets ({testbeds}): {seeds} seeds, not enough yet.")
    return out or [NOT_RUN]


def cost_text(runs: Sequence[AgentResult]) -> str:
    """`, 2 µs per round and chain on CPU`, where all runs were on one machine."""
    devices = devices_of(runs)
    seconds = sum(chain_cost(r).seconds for r in runs) / sum(r.rounds for r in runs)
    told = f", {number(1e6 * seconds)} µs per round and chain on {devices[0]}"
    return told if len(devices) == 1 else ""


def more(book: Book) -> list[str]:
    """One matrix, and yardsticks."""
    results = book.shelf.of(STUDY)
    found = by_testbed(book, STUDY)
    if not found:
        return []
    sticks = those_of([*results, *book.shelf.of(DATA_STUDY)], book.yardsticks)
    parts = [section("Regrets", matrix(book, found, overall(results)), READING)]
    return [*parts, *part(sticks)]


QUESTION = Question(
    name="defaults",
    place=110,
    title="Which agent is the best without tuning, and what does it cost?",
    asks=(
        "Every main agent as it is out of the box: noise and prior are learned, and the weight of "
        "a bonus falls as 1/√s. Networks have the preset `beta-1`, without learned noise. Ranks "
        "are averaged over the testbeds of a kind, so that no testbed counts for more than "
        "another."
    ),
    studies=(STUDY, DATA_STUDY),
    says=says,
    more=more,
)
