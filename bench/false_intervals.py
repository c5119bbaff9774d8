"""How often an interval sees a difference that does not exist, for several shapes of them.

`python bench/false_intervals.py` writes bench/false_intervals.csv; docs/results/reading.md shows
it. Differences have mean 0. *Stuck* seeds lie 8 above the others, whose deviation is 0.3. Claims
are judged by ratios of mean regrets: there both have the mean 10, and one has these differences.
"""

import csv
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from feelgood.stats.student import t_two_sided
from feelgood.stats.studentised import DRAWS, studentised
from showdown.changes import change_of
from showdown.question import claims_level

FILE = Path(__file__).with_suffix(".csv")
LAWS = ("Gaussian", "exponential", "one seed in six stuck", "one seed in twenty stuck")
SEEDS = (20, 30, 100)
SAMPLES = 2_000
#: Mean regret of both sides of a claim; no difference is lower than minus this.
REGRET = 10.0


@dataclasses.dataclass(frozen=True)
class Rates:
    """Shares of samples whose interval excludes the truth."""

    law: str
    seeds: int
    #: The studentised bootstrap's interval at 95 %, and Student's.
    studentised: float
    student: float
    #: The interval of claims, at its own level.
    claims: float
    claims_level: float


def draw(law: str, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Differences with mean 0."""
    if law == "Gaussian":
        return rng.normal(size=size)
    if law == "exponential":
        return rng.exponential(size=size) - 1.0
    share = 1 / 6 if "six" in law else 1 / 20
    return 0.3 * rng.normal(size=size) + 8.0 * ((rng.random(size) < share) - share)


def rates(law: str, seeds: int, samples: int, seed: int, draws: int = DRAWS) -> Rates:
    """False intervals of many samples."""
    found = draw(law, (samples, seeds), np.random.default_rng(seed))
    level = claims_level()
    t = found.mean(axis=1) / (found.std(axis=1, ddof=1) / np.sqrt(seeds))
    ours, claims = 0, 0
    for own in found:
        ours += studentised(own, draws=draws).p <= 0.05
        regrets = np.full((1, seeds), REGRET)
        change = change_of(regrets + own, regrets, np.ones(1), level, draws)
        claims += change is not None and not change.low <= 0.0 <= change.high
    student = float(np.mean([t_two_sided(own, seeds - 1) <= 0.05 for own in t]))
    return Rates(law, seeds, ours / samples, student, claims / samples, level)


def all_rates(samples: int = SAMPLES) -> Iterator[Rates]:
    """Every law and number of seeds."""
    for seed, (law, seeds) in enumerate((law, n) for law in LAWS for n in SEEDS):
        yield rates(law, seeds, samples, seed)


def recorded() -> list[dict[str, str]]:
    """The lines of the file."""
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Write the file."""
    with FILE.open("w", newline="") as file:
        names = [field.name for field in dataclasses.fields(Rates)]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for one in all_rates():
            values = dataclasses.asdict(one)
            digits = {n: f"{values[n]:.4f}" for n in ("studentised", "student", "claims")}
            writer.writerow(values | digits | {"claims_level": f"{one.claims_level:.6f}"})


if __name__ == "__main__":
    main()
