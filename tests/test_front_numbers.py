"""What the front page advises, computed twice more from `results/` with none of our code.

Once with Arrow, NumPy and a bootstrap of its own, once with pandas and SciPy. Its claims and its
rank correlation are computed again in `test_showdown_headlines` and `test_showdown_counts`.
"""

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "results" / "README.md").read_text()
#: The situations of tuned agents; that of a data set has its name.
TUNED = {
    "Linear rewards, few features per arm": ("linear-20", "linear-40"),
    "Rewards of 0 or 1": ("logistic-20",),
    "A rare arm that pays a lot": ("wheel-0.5", "wheel-0.99"),
}
#: Classes, which are the arms.
CLASSES = {"adult": 2, "covertype": 7, "magic": 2, "mushroom": 2, "shuttle": 7}
ROW = re.compile(
    r"^\| (?P<have>[^|]+) \| (?P<use>`[^|]+) \| (?P<regret>[\d][^|]+) \| (?P<lints>[^|]+) \| "
    r"(?P<fixed>[^|]+) \| (?P<chance>[^|]+) \| (?P<rounds>[^|]+) \|$",
    re.MULTILINE,
)
Regrets = Mapping[str, np.ndarray]


class Situation(NamedTuple):
    """A row of the page, its testbeds and the start of the name of their studies."""

    row: re.Match[str]
    testbeds: tuple[str, ...]
    tuned: bool

    def study(self, testbed: str) -> str:
        return "ranking" if self.tuned else f"data-{testbed}"

    def numbers(self, column: str) -> list[float]:
        return [float(text.replace(",", "")) for text in self.row[column].split("; ")]


def situations() -> list[Situation]:
    found = []
    for row in ROW.finditer(PAGE):
        table = re.fullmatch(r"A table like (\w+), with networks", row["have"])
        testbeds = (table[1],) if table else TUNED[row["have"]]
        found.append(Situation(row, testbeds, table is None))
    return found


HAVE = [s.row["have"] for s in situations()]


@pytest.fixture(params=situations(), ids=HAVE)
def situation(request: pytest.FixtureRequest) -> Situation:
    found: Situation = request.param
    return found


@functools.cache
def by_arrow(testbed: str, study: str) -> Regrets:
    """Regrets by agent, in the order of the seeds; all agents have the same seeds."""
    names = ["agent", "studies", "seed", "final_regret", "settings"]
    found: dict[str, dict[int, float]] = {}
    for row in pq.read_table(ROOT / "results" / f"{testbed}.parquet", columns=names).to_pylist():
        if study in row["studies"]:
            own = found.setdefault(row["agent"], {})
            assert row["seed"] not in own, "one run per agent"
            own[row["seed"]] = row["final_regret"]
    assert len({tuple(sorted(own)) for own in found.values()}) == 1
    return {agent: np.array([own[s] for s in sorted(own)]) for agent, own in found.items()}


@functools.cache
def by_pandas(testbed: str, study: str) -> Regrets:
    """The same."""
    table = pd.read_parquet(ROOT / "results" / f"{testbed}.parquet")
    table = table[[study in own for own in table["studies"]]]
    wide = table.pivot(index="seed", columns="agent", values="final_regret")
    assert not wide.isna().any(axis=None)
    return {str(agent): wide[agent].to_numpy() for agent in wide}


def t_by_hand(a: np.ndarray, b: np.ndarray) -> float:
    difference = a - b
    spread = difference.std(ddof=1) / np.sqrt(len(difference))
    if spread < 1e-9:
        return float(abs(difference.mean()) < 1e-9)
    return float(2 * stats.t.sf(abs(difference.mean()) / spread, len(difference) - 1))


def t_by_scipy(a: np.ndarray, b: np.ndarray) -> float:
    return 1.0 if np.allclose(a, b) else float(stats.ttest_rel(a, b).pvalue)


def may_be_best(found: Regrets, test: Callable[[np.ndarray, np.ndarray], float]) -> list[str]:
    """Those beside which none is lower with p ≤ 0.05/(k − 1), the lowest mean first."""
    order = sorted(found, key=lambda agent: float(found[agent].mean()))
    bound = 0.05 / (len(order) - 1)
    return [
        agent
        for place, agent in enumerate(order)
        if not any(test(found[agent], found[lower]) <= bound for lower in order[:place])
    ]


def bootstrapped(values: np.ndarray) -> tuple[float, float]:
    """A percentile bootstrap of the mean, which knows nothing of skewness."""
    drawn = np.random.default_rng(5).integers(0, len(values), (10_000, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def bias_corrected(values: np.ndarray) -> tuple[float, float]:
    """SciPy's."""
    rng = np.random.default_rng(6)
    found = stats.bootstrap((values,), np.mean, n_resamples=9_999, method="BCa", rng=rng)
    return found.confidence_interval


WAYS = (
    pytest.param(by_arrow, t_by_hand, bootstrapped, 0.15, id="numpy"),
    pytest.param(by_pandas, t_by_scipy, bias_corrected, 0.06, id="pandas"),
)


def test_the_page_has_all_situations() -> None:
    tables = [f"A table like {bed}, with networks" for bed in CLASSES]
    assert [*TUNED, *tables] == HAVE


@pytest.mark.parametrize(("read", "test", "interval", "slack"), WAYS)
def test_who_may_be_the_best(
    situation: Situation,
    read: Callable[[str, str], Regrets],
    test: Callable[[np.ndarray, np.ndarray], float],
    interval: Callable[[np.ndarray], tuple[float, float]],
    slack: float,
) -> None:
    """The agents that are named, how many more there are, and the regret of the first."""
    found = [read(bed, situation.study(bed)) for bed in situation.testbeds]
    sets = [may_be_best(own, test) for own in found]
    best = [agent for agent in sets[0] if all(agent in own for own in sets)]
    named = re.findall(r"`([\w+-]+)`", situation.row["use"])
    more = re.search(r"and (\d+) more$", situation.row["use"])
    assert named == best[: len(named)]
    assert len(best) == len(named) + (int(more[1]) if more else 0)
    cells = situation.row["regret"].split("; ")
    for cell, own in zip(cells, found, strict=True):
        told = [float(text.replace(",", "")) for text in re.findall(r"\d[\d.,]*\d", cell)]
        assert own[best[0]].mean() == pytest.approx(told[0], rel=1e-3)
        ends = interval(own[best[0]])
        np.testing.assert_allclose(ends, told[1:], atol=slack * (told[2] - told[1]) + 0.1)


@pytest.mark.parametrize("read", (by_arrow, by_pandas))
def test_what_stands_beside(situation: Situation, read: Callable[[str, str], Regrets]) -> None:
    """`lints`, chance and the best fixed arm; a dagger where that is no worse."""
    sticks = pd.read_csv(ROOT / "results" / "yardsticks.csv")
    rounds, *others = situation.numbers("rounds")
    assert not others
    fixed, chance = situation.numbers("fixed"), situation.numbers("chance")
    for place, bed in enumerate(situation.testbeds):
        found = read(bed, situation.study(bed))
        own = sticks[(sticks["testbed"] == bed) & (sticks["rounds"] == rounds)]
        assert np.abs(own["fixed"] / fixed[place] - 1).min() < 1e-3
        if situation.tuned:
            assert found["lints"].mean() == pytest.approx(
                situation.numbers("lints")[place], rel=1e-3
            )
            # The agent that plays by chance was run, too; a fixed arm loses a little less.
            assert found["uniform"].mean() == pytest.approx(chance[place], rel=0.1)
            assert 0.85 < fixed[place] / chance[place] < 1.0
        else:
            assert situation.row["lints"] == "–"
            assert chance[place] == pytest.approx(rounds * (1 - 1 / CLASSES[bed]), abs=0.5)
        lowest = min(float(values.mean()) for values in found.values())
        assert ("†" in situation.row["regret"].split("; ")[place]) is (lowest >= fixed[place])
