"""How regret goes with posterior error: runs whose draws were measured along the way."""

from collections.abc import Callable, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import Estimate, bootstrap
from feelgood.stats.rank_correlation import rank_coefficients
from showdown.book import Book, grid, items, section
from showdown.effects import FEWEST_SEEDS, effect, number, signed, summary
from showdown.figures import scatter
from showdown.questions import NOT_RUN, in_order
from showdown.shelf import settings_text

#: The error that is meant where one number is needed.
ERROR = "wasserstein2"
MEASURES = {"bias": "bias", "trace": "variance ratio", ERROR: "W₂²", "choice": "arm choice"}
SETTINGS = ("beta", "eta", "lam", "steps")
#: Fewer settings than this say nothing of a rank.
FEWEST_SETTINGS = 3


def measured_runs(book: Book) -> list[AgentResult]:
    """Runs that have measures."""
    return [r for r in in_order(k.result for k in book.shelf.kept) if r.posterior is not None]


def answer(book: Book) -> str:
    """The question of the front page."""
    title = "How does regret go with posterior error?"
    runs = measured_runs(book)
    if not runs:
        return section(title, NOT_RUN)
    return section(
        title,
        "Draws were measured against the exact posterior along the run. The error is the squared "
        "2-Wasserstein distance in the parameters' own units, mean over the measured rounds "
        "([all measures](posterior.md)). [2×] says that the draws have twice the posterior's "
        "variance. Intervals of the rank correlations are over seeds: other settings than these "
        "would give other ones.",
        items([*rank_sentences(runs), *nearest_sentences(runs)]),
        _figure(book, runs),
    )


def page(book: Book) -> str:
    """The page of posterior errors."""
    runs = measured_runs(book)
    parts = [
        "# Posteriors",
        "How far the agents' draws are from the exact posterior, and whether that decides their "
        "regret. [How posteriors are measured](../posterior.md) · "
        "[all questions and answers](README.md)",
    ]
    if not runs:
        return "\n\n".join([*parts, NOT_RUN]) + "\n"
    sentences = [*rank_sentences(runs), *nearest_sentences(runs)]
    parts.append(section("What it shows", items(sentences), _figure(book, runs)))
    header = ("testbed", "agent", "settings", *MEASURES.values(), "regret", "seeds")
    about = (
        "Means over the measured rounds and seeds, with 95 % bootstrap intervals over seeds. Exact "
        "draws have variance ratio 1; their other measures are small and not zero."
    )
    parts.append(section("Measures", about, grid(header, [_row(r) for r in runs], numbers=3)))
    return "\n\n".join(parts) + "\n"


def measured(r: AgentResult, measure: str = ERROR) -> np.ndarray:
    """Of each seed: the mean of the measure over the rounds at which it was taken."""
    assert r.posterior is not None
    values = r.posterior.value[measure]
    there = np.isfinite(values)
    sums = np.where(there, values, 0.0).sum(axis=1)
    count = there.sum(axis=1)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


#: Parts of the settings, by the mean variance of their draws in that of the posterior; settings
#: near 1 are the good ones of both.
SIDES: dict[str, Callable[[float], bool]] = {
    "draws with at least 0.9 times the posterior's variance": lambda ratio: ratio >= 0.9,
    "draws with at most 1.1 times it": lambda ratio: ratio <= 1.1,
}


def rank_sentences(runs: Sequence[AgentResult]) -> list[str]:
    """Whether settings with hotter draws, or with larger error, have larger regret, seed by seed.

    Hot and cold draws are told apart: both are errors, and not of the same kind.
    """
    out = []
    for testbed in dict.fromkeys(r.testbed for r in runs):
        here = [r for r in runs if r.testbed == testbed]
        out.append(_rank_sentence(testbed, here, "trace", "variance of the draws"))
        for name, holds in SIDES.items():
            side = [r for r in here if holds(variance_ratio(r))]
            out.append(_rank_sentence(f"{testbed}, {name}", side, ERROR, "error"))
    return out


def _rank_sentence(where: str, here: Sequence[AgentResult], measure: str, name: str) -> str:
    seeds = sorted(set.intersection(*(set(r.seeds) for r in here))) if here else []
    if len(here) < FEWEST_SETTINGS or len(seeds) < FEWEST_SEEDS:
        return f"{where}: cannot say from {len(here)} settings and {len(seeds)} seeds."
    places = [[r.seeds.index(s) for s in seeds] for r in here]
    regret = np.stack([r.final_regret[p] for r, p in zip(here, places, strict=True)])
    value = np.stack([measured(r, measure)[p] for r, p in zip(here, places, strict=True)])
    whole = np.isfinite(regret).all(axis=0) & np.isfinite(value).all(axis=0)
    each = [rank_coefficients(regret[:, i], value[:, i])[0] for i in np.flatnonzero(whole)]
    mean = bootstrap(np.array(each, np.float64))
    return (
        f"{where}, over {len(here)} settings: {_connection(mean, name)}; rank correlation "
        f"{signed(mean.value)} [{signed(mean.low)}, {signed(mean.high)}] ({mean.count} seeds)."
    )


def _connection(mean: Estimate, name: str) -> str:
    if mean.count < FEWEST_SEEDS:
        return f"cannot say whether {name} and regret go together"
    if mean.low > 0:
        return f"larger {name} goes with larger regret"
    return f"larger {name} goes with smaller regret" if mean.high < 0 else "no connection is seen"


def nearest_sentences(runs: Sequence[AgentResult]) -> list[str]:
    """Each agent's settings beside the one whose draws are nearest the posterior."""
    out = []
    for testbed, agent in dict.fromkeys((r.testbed, r.agent) for r in runs):
        own = [r for r in runs if (r.testbed, r.agent) == (testbed, agent)]
        finite = [r for r in own if np.isfinite(measured(r)).any()]
        if len(finite) < 2:
            continue
        best = min(finite, key=lambda r: float(np.nanmean(measured(r))))
        names = _varying(own)
        effects = [effect(_ratio(r, names), r, best) for r in own if r is not best]
        subject = f"`{agent}` on {testbed} beside its nearest, {_ratio(best, names)}"
        out.append(summary(subject, effects))
    return out


def _varying(runs: Sequence[AgentResult]) -> list[str]:
    return [n for n in SETTINGS if len({r.settings.get(n) for r in runs}) > 1]


def variance_ratio(r: AgentResult) -> float:
    """The variance of its draws in that of the posterior."""
    return bootstrap(measured(r, "trace")).value


def _ratio(r: AgentResult, names: Sequence[str]) -> str:
    """Its settings and the variance of its draws in that of the posterior."""
    return f"{settings_text(r, names)} [{times(variance_ratio(r))}]"


def times(ratio: float) -> str:
    """`2.3×`, `130×`."""
    return f"{float(f'{ratio:.2g}'):,g}×"


def _row(r: AgentResult) -> list[str]:
    assert r.posterior is not None
    cells = [r.testbed, f"`{r.agent}`", settings_text(r, SETTINGS)]
    for measure in MEASURES:
        known = measure in r.posterior.value
        cells.append(_with_interval(measured(r, measure)) if known else "–")
    return [*cells, _with_interval(r.final_regret), str(r.regret.count)]


def _with_interval(values: np.ndarray) -> str:
    mean = bootstrap(np.asarray(values, np.float64))
    if mean.count < 2:
        return number(mean.value)
    return f"{_digits(mean.value)} [{_digits(mean.low)}, {_digits(mean.high)}]"


def _digits(value: float) -> str:
    return number(value) if abs(value) >= 10 else f"{value:.3f}"


def _figure(book: Book, runs: Sequence[AgentResult]) -> str:
    return book.figure(
        "posterior",
        "Mean final regret against posterior error (squared 2-Wasserstein distance), one point per "
        "setting, with 95 % intervals of the regret.",
        lambda: scatter(
            [(r.agent, bootstrap(measured(r)).value, r) for r in runs],
            "squared 2-Wasserstein distance to the posterior, logarithmic",
        ),
    )
