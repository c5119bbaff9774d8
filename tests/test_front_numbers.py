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
#: The situations of tuned agents.
TUNED = {
    "Linear": ("linear-20", "linear-40"),
    "0 or 1": ("logistic-20",),
    "Rare arm": ("wheel-0.5", "wheel-0.99"),
}
#: Classes, which are the arms.
CLASSES = {"adult": 2, "covertype": 7, "magic": 2, "mushroom": 2, "shuttle": 7}
#: Rows and those of the largest class, as the repositories of the data sets state them.
LARGEST = {
    "adult": (48_842, 37_155),
    "covertype": (581_012, 283_301),
    "magic": (19_020, 12_332),
    "mushroom": (8_124, 4_208),
    "shuttle": (58_000, 45_586),
}
#: Seeds over which yardsticks are averaged.
AVERAGED = 20
ROW = re.compile(
    r"^\| (?P<kind>[^|:]+): (?P<testbed>[\w.-]+) \| (?P<use>`[^|]+) \| "
    r"(?P<regret>[\d][^|]+) \| (?P<lints>[^|]+) \| "
    r"(?P<fixed>[^|]+) \| (?P<chance>[^|]+) \| (?P<rounds>[^|]+) \|$",
    re.MULTILINE,
)
Regrets = Mapping[str, np.ndarray]


class Situation(NamedTuple):
    """A row of the page."""

    row: re.Match[str]

    @property
    def testbed(self) -> str:
        return self.row["testbed"]

    @property
    def tuned(self) -> bool:
        return self.row["kind"] in TUNED

    @property
    def alike(self) -> tuple[str, ...]:
        """Its testbed and those of the same kind, on all of which an agent may be the best."""
        return TUNED[self.row["kind"]] if self.tuned else (self.testbed,)

    @property
    def study(self) -> str:
        return "ranking" if self.tuned else f"data-{self.testbed}"

    def number(self, column: str) -> float:
        return float(self.row[column].replace(",", ""))


SITUATIONS = [Situation(row) for row in ROW.finditer(PAGE)]


@pytest.fixture(params=SITUATIONS, ids=lambda s: s.testbed)
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
    kinds = [(kind, bed) for kind, beds in TUNED.items() for bed in beds]
    kinds += [("Networks", bed) for bed in CLASSES]
    assert [(s.row["kind"], s.testbed) for s in SITUATIONS] == kinds


@pytest.mark.parametrize(("read", "test", "interval", "slack"), WAYS)
def test_who_may_be_the_best(
    situation: Situation,
    read: Callable[[str, str], Regrets],
    test: Callable[[np.ndarray, np.ndarray], float],
    interval: Callable[[np.ndarray], tuple[float, float]],
    slack: float,
) -> None:
    """The agents that are named, how many more there are, and the regret of the first."""
    sets = [may_be_best(read(bed, situation.study), test) for bed in situation.alike]
    best = [agent for agent in sets[0] if all(agent in own for own in sets)]
    named = re.findall(r"`([\w+-]+)`", situation.row["use"])
    more = re.search(r"and (\d+) more$", situation.row["use"])
    assert named == best[: len(named)]
    assert len(best) == len(named) + (int(more[1]) if more else 0)
    own = read(situation.testbed, situation.study)[best[0]]
    cell = re.findall(r"\d[\d.,]*\d", situation.row["regret"])
    mean, low, high = (float(text.replace(",", "")) for text in cell)
    assert own.mean() == pytest.approx(mean, rel=1e-3)
    np.testing.assert_allclose(interval(own), (low, high), atol=slack * (high - low) + 0.1)


@pytest.mark.parametrize("read", (by_arrow, by_pandas))
def test_what_stands_beside(situation: Situation, read: Callable[[str, str], Regrets]) -> None:
    """`lints`, chance and the best fixed arm; a dagger where that is no worse."""
    sticks = pd.read_csv(ROOT / "results" / "yardsticks.csv")
    rounds, fixed, chance = map(situation.number, ("rounds", "fixed", "chance"))
    found = read(situation.testbed, situation.study)
    own = sticks[(sticks["testbed"] == situation.testbed) & (sticks["rounds"] == rounds)]
    assert np.abs(own["fixed"] / fixed - 1).min() < 1e-3
    if situation.tuned:
        assert found["lints"].mean() == pytest.approx(situation.number("lints"), rel=1e-3)
        # The agent that plays by chance was run, too; a fixed arm loses a little less.
        assert found["uniform"].mean() == pytest.approx(chance, rel=0.1)
        assert 0.85 < fixed / chance < 1.0
    else:
        assert situation.row["lints"] == "–"
        assert chance == pytest.approx(rounds * (1 - 1 / CLASSES[situation.testbed]), abs=0.5)
    shown = re.findall(r"`([\w+-]+)`", situation.row["use"])[0]
    assert ("†" in situation.row["regret"]) is (float(found[shown].mean()) >= fixed)


@pytest.mark.parametrize("bed", CLASSES)
def test_the_best_fixed_arm_of_a_table_is_its_largest_class(bed: str) -> None:
    """Within 5 errors, 6e-7 each: a run ends with a part of the rows, whose shares vary."""
    (row,) = (s for s in SITUATIONS if s.testbed == bed)
    rounds = row.number("rounds")
    rows, largest = LARGEST[bed]
    other = 1 - largest / rows
    part = rounds % rows
    error = np.sqrt(part * (1 - part / rows) * other * (1 - other) / AVERAGED)
    assert row.number("fixed") == pytest.approx(rounds * other, abs=5 * error + 0.5)


@pytest.mark.parametrize("delta", (0.5, 0.99))
def test_the_yardsticks_of_a_wheel_played_with_numpy(delta: float) -> None:
    """Rewards 1.2 and 1 inside, 50 for one arm in its quadrant outside; 5 errors, 6e-7 each."""
    (row,) = (s for s in SITUATIONS if s.testbed == f"wheel-{delta}")
    rng, rounds, runs = np.random.default_rng(3), int(row.number("rounds")), 400
    outside = rng.random((runs, rounds)) > delta**2
    lucky = rng.integers(1, 5, (runs, rounds))
    lost = np.zeros((5, runs))
    for arm in range(5):
        mean = np.where(outside & (lucky == arm), 50.0, 1.2 if arm == 0 else 1.0)
        lost[arm] = (np.where(outside, 50.0, 1.2) - mean).sum(axis=1)
    for column, own in (("fixed", lost.min(axis=0)), ("chance", lost.mean(axis=0))):
        error = own.std() * np.sqrt(1 / AVERAGED + 1 / runs)
        assert row.number(column) == pytest.approx(own.mean(), abs=5 * error)
