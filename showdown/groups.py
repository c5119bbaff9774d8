"""One page a group of testbeds: ours beside the published, figures, and what they show."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from feelgood.errors import FeelgoodError
from feelgood.paper.tables import TITLES
from feelgood.report import charts
from feelgood.report.tables import Comparison, Verdict, to_markdown
from feelgood.results import AgentResult
from feelgood.statistics import bootstrap, rank_results
from showdown.book import Book, grid, items, section
from showdown.effects import FEWEST_SEEDS, number
from showdown.published import comparisons, share_sentence, unexplained
from showdown.questions import posterior_error, posterior_runs, rank_sentences
from showdown.shelf import settings_text


@dataclasses.dataclass(frozen=True)
class Group:
    """Testbeds that share a page."""

    name: str
    title: str
    about: str
    testbeds: tuple[str, ...]
    #: Studies whose agents, at the paper's settings, are ranked and drawn.
    studies: tuple[str, ...]


DATA = (
    *("adult", "covertype", "magic", "mushroom", "shuttle"),
    *("mnist", "financial", "jester", "restaurant", "cifar10"),
)
GROUPS = (
    Group(
        "linear",
        "Linear bandits",
        "5 arms × 4 dimensions (linear-20) and 5 × 8 (linear-40), Gaussian rewards.",
        ("linear-20", "linear-40"),
        ("table-main",),
    ),
    Group(
        "logistic",
        "Logistic bandits",
        "50 arms with contexts of length 1, Bernoulli rewards.",
        ("logistic-20", "logistic-40"),
        ("table-main",),
    ),
    Group(
        "wheel",
        "Wheel bandits",
        "A safe arm everywhere, one rich arm a quadrant outside the radius δ.",
        ("wheel-0.01", "wheel-0.1", "wheel-0.5", "wheel-0.99"),
        ("table-wheel",),
    ),
    Group(
        "neural",
        "Neural bandits",
        "Ten data sets turned into bandits, agents with networks.",
        DATA,
        tuple(f"data-{name}" for name in DATA),
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


def _table(found: Sequence[Comparison], table: str) -> str:
    if all(c.verdict is Verdict.NOT_RUN for c in found):
        return f"`feelgood reproduce {table}`: none of its {len(found)} numbers was run."
    return f"`feelgood reproduce {table}`\n\n" + to_markdown(found, TITLES[table]).strip()


def _at_paper(book: Book, group: Group) -> list[AgentResult]:
    """One result for each agent and testbed: that at "β = 10³" of the group's own tables."""
    from feelgood.paper.published import all_published

    out: dict[tuple[str, str], AgentResult] = {}
    tables = {"main", "wheel", "neural-cumulative", "neuralts-cumulative"}
    for i, published in enumerate(all_published()):
        result = book.shelf.by_number.get(i)
        if result is None or published.table not in tables or published.beta == 1:
            continue
        if result.testbed in group.testbeds:
            out.setdefault((result.testbed, result.agent), result)
    return list(out.values())


def _rankings(book: Book, group: Group) -> list[str]:
    """Who may be the best at the paper's settings, testbed by testbed."""
    sentences = []
    results = _at_paper(book, group)
    for testbed in group.testbeds:
        own = [r for r in results if r.testbed == testbed]
        try:
            each, _ = rank_results(own)
        except FeelgoodError as error:
            sentences.append(f"{testbed}: cannot say who is the best: {error}")
            continue
        ranking = each[testbed]
        if ranking.seeds < FEWEST_SEEDS:
            sentences.append(
                f"{testbed}: {ranking.seeds} seeds are too few to say who is the best."
            )
        else:
            sentences.append(f"{testbed}, agents at the paper's settings: {ranking.verdict}")
    return sentences


def _figures(book: Book, group: Group) -> list[str]:
    results = _at_paper(book, group)
    if not results:
        return []
    # Smoothed and plain bonus are the same function at b = 1000: one of them is drawn.
    lines = [r for r in results if "sfg" not in r.agent]
    return [
        section(
            "Figures",
            book.figure(
                f"{group.name}-curves",
                "Mean cumulative regret along the run; bands hold 10 to 90 % of the seeds.",
                lambda: charts.regret_curves(lines, log_x=True, log_y=True),
            ),
            book.figure(
                f"{group.name}-final",
                "Mean final regret with its 95 % interval, and single seeds.",
                lambda: charts.final_intervals(results, log_x=True),
            ),
        )
    ]


def posterior_page(book: Book) -> str:
    """The page of posterior errors."""
    runs = posterior_runs(book)
    parts = [
        "# Posteriors",
        "How far the agents' draws are from the exact posterior, and whether that decides their "
        "regret. [How posteriors are measured](../posterior.md) · "
        "[all questions and answers](README.md)",
    ]
    if not runs:
        return "\n\n".join([*parts, "Cannot say: no draws were measured along a run."]) + "\n"
    parts.append(section("What it shows", items(rank_sentences(runs))))
    rows = [_posterior_row(r) for r in runs]
    header = ("testbed", "agent", "settings", *_MEASURES.values(), "regret", "seeds")
    parts.append(section("Measures", _ABOUT, grid(header, rows, numbers=3)))
    return "\n\n".join(parts) + "\n"


_MEASURES = {"bias": "bias", "trace": "variance ratio", "wasserstein2": "W₂²", "choice": "choice"}
_ABOUT = (
    "Means over the measured rounds and seeds, with 95 % bootstrap intervals over seeds. Exact "
    "draws have variance ratio 1; their other measures are small and not zero."
)


def _posterior_row(r: AgentResult) -> list[str]:
    assert r.posterior is not None
    cells = [r.testbed, f"`{r.agent}`", settings_text(r, ("beta", "lam", "steps"))]
    for measure in _MEASURES:
        known = measure in r.posterior.value
        cells.append(_with_interval(posterior_error(r, measure)) if known else "–")
    return [*cells, _with_interval(r.final_regret), str(r.regret.count)]


def _with_interval(values: np.ndarray) -> str:
    mean = bootstrap(np.asarray(values, np.float64))
    if mean.count < 2:
        return number(mean.value)
    return f"{_digits(mean.value)} [{_digits(mean.low)}, {_digits(mean.high)}]"


def _digits(value: float) -> str:
    return number(value) if abs(value) >= 10 else f"{value:.3f}"
