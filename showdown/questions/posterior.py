"""How does regret go with posterior error? Runs whose draws were measured along the way."""

from collections.abc import Callable, Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.rank_correlation import rank_coefficients
from feelgood.stats.studentised import studentised
from showdown import yardsticks
from showdown.book import Book, grid, section
from showdown.effects import FEWEST_SEEDS, regret_text
from showdown.families import Family
from showdown.figures import scatter
from showdown.pairing import in_order
from showdown.question import Question
from showdown.shelf import settings_text
from showdown.wording import signed

#: The error that is meant where one number is needed.
ERROR = "wasserstein2"
SETTINGS = ("beta", "eta", "lam", "steps")
#: Fewer settings than this say nothing of a rank.
FEWEST_SETTINGS = 3


def measured_runs(book: Book) -> list[AgentResult]:
    """Runs that have measures."""
    return [r for r in in_order(k.result for k in book.shelf.kept) if r.posterior is not None]


def measured(r: AgentResult, measure: str = ERROR) -> np.ndarray:
    """Of each seed: the mean of the measure over the rounds at which it was taken."""
    assert r.posterior is not None
    values = r.posterior.value[measure]
    there = np.isfinite(values)
    sums = np.where(there, values, 0.0).sum(axis=1)
    count = there.sum(axis=1)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def variance_ratio(r: AgentResult) -> float:
    """The variance of its draws in that of the posterior."""
    return float(np.nanmean(measured(r, "trace")))


#: Parts of the settings, by the mean variance of their draws in that of the posterior; settings
#: near 1 are the good ones of both.
SIDES: dict[str, Callable[[float], bool]] = {
    "where draws scatter no less than the posterior": lambda ratio: ratio >= 0.9,
    "where draws scatter no more than the posterior": lambda ratio: ratio <= 1.1,
}


def says(book: Book, families: Sequence[Family]) -> list[str]:
    """Whether settings with hotter draws, or with larger error, have larger regret, seed by seed.

    Hot and cold draws are told apart: both are errors, and not of the same kind.
    """
    out = []
    runs = measured_runs(book)
    for testbed in dict.fromkeys(r.testbed for r in runs):
        here = [r for r in runs if r.testbed == testbed]
        out.append(rank_sentence(testbed, here, "trace", "variance of the draws"))
        for name, holds in SIDES.items():
            side = [r for r in here if holds(variance_ratio(r))]
            told = rank_sentence(f"{testbed}, {name}", side, ERROR, "error")
            if "smaller regret" in told and not holds(2.0):
                told += " Colder draws do better."
            out.append(told)
    return out


def rank_sentence(where: str, here: Sequence[AgentResult], measure: str, name: str) -> str:
    """The rank correlation of regret and a measure over these settings, mean over seeds."""
    seeds = sorted(set.intersection(*(set(r.seeds) for r in here))) if here else []
    if len(here) < FEWEST_SETTINGS or len(seeds) < FEWEST_SEEDS:
        return f"{where}: not enough yet, with {len(here)} settings and {len(seeds)} seeds."
    places = [[r.seeds.index(s) for s in seeds] for r in here]
    regret = np.stack([r.final_regret[p] for r, p in zip(here, places, strict=True)])
    value = np.stack([measured(r, measure)[p] for r, p in zip(here, places, strict=True)])
    whole = np.isfinite(regret).all(axis=0) & np.isfinite(value).all(axis=0)
    each = [rank_coefficients(regret[:, i], value[:, i])[0] for i in np.flatnonzero(whole)]
    mean = studentised(np.array(each, np.float64))
    told = "no connection is shown"
    if mean.p <= 0.05:
        told = f"a larger {name} goes with a {'larger' if mean.value > 0 else 'smaller'} regret"
    return (
        f"{where}, {len(here)} settings: {told}. Rank correlation {signed(mean.value)} "
        f"[{signed(mean.low)}, {signed(mean.high)}] ({mean.count} seeds)."
    )


def more(book: Book) -> list[str]:
    """The figure, and the measures of every setting."""
    runs = measured_runs(book)
    if not runs:
        return []
    points = [(r.agent, float(np.nanmean(measured(r))), r) for r in runs]
    picture = book.figure(
        "posterior",
        "Mean final regret against posterior error, one point per setting, with 95 % intervals.",
        lambda: scatter(points, "squared 2-Wasserstein distance to the posterior, logarithmic"),
    )
    rows = [
        [
            f"`{r.agent}`",
            settings_text(r, SETTINGS).replace(" = ", "="),
            f"{float(f'{variance_ratio(r):.2g}'):,g}×",
            f"{np.nanmean(measured(r)):.3g}",
            regret_text(r, yardsticks.dagger(r, book.yardsticks)),
        ]
        for r in runs
    ]
    header = ("agent", "settings", "variance", "error", "regret")
    about = (
        "*Variance* is that of the draws in units of the posterior's. *Error* is the squared "
        "2-Wasserstein distance. Both are means over the measured rounds and seeds. Regrets are "
        "means, with medians in brackets."
    )
    sticks = yardsticks.those_of(runs, book.yardsticks)
    table = section("Measures", about, grid(header, rows, numbers=2))
    return [section("Figure", picture), table, *yardsticks.part(sticks)]


QUESTION = Question(
    name="posterior",
    place=85,
    title="How does regret go with posterior error?",
    asks=(
        "Draws were measured against the exact posterior four times along the run, for hot and "
        "cold targets, few steps and bonuses. *No less* and *no more* allow a tenth of the "
        "posterior's variance. The error is the squared 2-Wasserstein distance in "
        "the parameters' own units. Intervals are over seeds; other settings than these would "
        "give other correlations. [How posteriors are measured](../posterior.md)."
    ),
    studies=("question-posterior",),
    says=says,
    more=more,
)
