"""How often verdicts on published numbers are false, for regrets of several shapes.

`python bench/false_verdicts.py` writes bench/false_verdicts.csv; docs/verdicts.md shows it. Both
sides have the same law up to a factor: 1 for equal means, 1.2 for the margin, 1.5 for beyond it.
Deviations are those of the paper's tables: a quarter of the mean, or half of it for skewed regrets.
Bimodal regrets have one stuck seed in six at 3.5 times the regret of the others.
"""

import csv
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import stdtr

from feelgood.report.published_comparisons import MARGIN, MARGIN_LEVEL, ROW_LEVEL
from feelgood.stats.equivalence import chance_of_mean

FILE = Path(__file__).with_suffix(".csv")
SHAPES = ("normal", "skewed", "bimodal")
#: Seeds published and ours.
SEEDS = ((10, 10), (10, 30), (10, 100), (5, 100))
#: Our true mean over the published one.
FACTORS = (1.0, 1.0 + MARGIN, 1.5)
PAIRS = 4_000


@dataclasses.dataclass(frozen=True)
class Rates:
    """Shares of pairs of samples with each verdict."""

    shape: str
    published_seeds: int
    our_seeds: int
    factor: float
    agrees: float
    differs: float
    uncertain: float
    #: Called different by Welch's test alone.
    welch: float


def draw(shape: str, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Regrets with mean 1."""
    if shape == "normal":
        return rng.normal(1.0, 0.25, size)
    if shape == "skewed":  # log-normal, deviation 0.5
        spread = math.sqrt(math.log(1.25))
        return rng.lognormal(-0.5 * spread**2, spread, size)
    stuck = rng.uniform(size=size) < 1 / 6
    return (rng.normal(1.0, 0.1, size) + 2.5 * stuck) / (1.0 + 2.5 / 6)


def rates(shape: str, theirs: int, ours: int, factor: float, pairs: int, seed: int) -> Rates:
    """Verdicts of many pairs of samples, with the tests written out for arrays."""
    rng = np.random.default_rng(seed)
    a, b = factor * draw(shape, (pairs, ours), rng), draw(shape, (pairs, theirs), rng)
    share_a, share_b = a.var(1, ddof=1) / ours, b.var(1, ddof=1) / theirs
    error = np.sqrt(share_a + share_b)
    part = share_a / (share_a + share_b)
    df = 1.0 / (part**2 / (ours - 1) + (1.0 - part) ** 2 / (theirs - 1))
    difference = a.mean(1) - b.mean(1)
    equal = np.ones(pairs, bool)
    for ratio, sign in ((1.0 + MARGIN, -1.0), (1.0 - MARGIN, 1.0)):
        own = np.sqrt(share_a + ratio**2 * share_b)
        of_a = share_a / own**2
        degrees = 1.0 / (of_a**2 / (ours - 1) + (1.0 - of_a) ** 2 / (theirs - 1))
        gap = sign * (a.mean(1) - ratio * b.mean(1))
        equal &= stdtr(degrees, -gap / own) <= MARGIN_LEVEL
    apart = ~equal & (2.0 * stdtr(df, -np.abs(difference) / error) <= ROW_LEVEL)
    alone = float(apart.mean())
    for i in np.flatnonzero(apart):
        apart[i] = chance_of_mean(a[i], float(b[i].mean()), theirs, draws=1_000) <= ROW_LEVEL
    shares = (float(equal.mean()), float(apart.mean()), float((~equal & ~apart).mean()))
    return Rates(shape, theirs, ours, factor, *shares, alone)


def all_rates(pairs: int = PAIRS) -> Iterator[Rates]:
    """Every shape, number of seeds and factor."""
    cases = [(s, n, f) for s in SHAPES for n in SEEDS for f in FACTORS]
    for seed, (shape, (theirs, ours), factor) in enumerate(cases):
        yield rates(shape, theirs, ours, factor, pairs, seed)


def main() -> None:
    """Write the file."""
    with FILE.open("w", newline="") as file:
        names = [field.name for field in dataclasses.fields(Rates)]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for one in all_rates():
            values = dataclasses.asdict(one)
            digits = {k: f"{values[k]:.3f}" for k in ("agrees", "differs", "uncertain", "welch")}
            writer.writerow(values | digits)


if __name__ == "__main__":
    main()
