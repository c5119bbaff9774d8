"""The counts of agreement and the rank correlation computed again, with none of our statistics.

From `results/` and the table of published numbers alone. The counts once by Welch's t-tests
written out, once by intervals and rank by rank; the correlation once with SciPy, once with pandas.
"""

import csv
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "src" / "feelgood" / "paper" / "published.csv"
PAGE = (ROOT / "docs" / "results" / "agreement.md").read_text()
VERDICTS = ROOT / "docs" / "results" / "agreement.csv"
Row = Mapping[str, Any]


class Sample(NamedTuple):
    """Mean, deviation and size."""

    mean: float
    std: float
    size: int


@functools.cache
def published() -> list[dict[str, str]]:
    with PUBLISHED.open(newline="") as file:
        return list(csv.DictReader(file))


@functools.cache
def verdicts() -> list[dict[str, str]]:
    with VERDICTS.open(newline="") as file:
        return list(csv.DictReader(file))


@functools.cache
def beside() -> dict[tuple[int, bool], np.ndarray]:
    """Regrets by seed beside each published number; apart those as the released code has them."""
    names = ["testbed", "agent", "settings", "rounds", "seed", "numbers"]
    names += ["final_regret", "simple_regret"]
    found: dict[tuple[int, bool], dict[str, list[float]]] = {}
    for file in sorted((ROOT / "results").glob("*.parquet")):
        for row in pq.read_table(file, columns=names).to_pylist():
            released = "released-" in row["testbed"] + row["agent"]
            for number in row["numbers"]:
                simple = published()[number]["metric"] == "simple_regret"
                value = row["simple_regret" if simple else "final_regret"]
                run = str((row["agent"], row["settings"], row["rounds"]))
                own = found.setdefault((number, released), {}).setdefault(run, [])
                own.append(np.nan if value is None else value)
    return {key: np.array(list(runs.values())[-1]) for key, runs in found.items()}


def theirs(number: int) -> Sample:
    row = published()[number]
    return Sample(float(row["mean"]), float(row["std"]), int(row["seeds"]))


def ours(number: int, released: bool) -> Sample | None:
    """With 20 seeds or more, of which none diverged."""
    values = beside().get((number, released))
    if values is None or len(values) < 20 or not np.isfinite(values).all():
        return None
    return Sample(float(values.mean()), float(values.std(ddof=1)), len(values))


def one_sided(a: Sample, b: Sample, ratio: float, side: float) -> float:
    """P of a mean so far on this side of `ratio` times the other, by Welch's test."""
    parts = a.std**2 / a.size, (ratio * b.std) ** 2 / b.size
    error = np.sqrt(sum(parts))
    df = sum(parts) ** 2 / (parts[0] ** 2 / (a.size - 1) + parts[1] ** 2 / (b.size - 1))
    return float(stats.t.sf(side * (a.mean - ratio * b.mean) / error, df))


def chance_of_equal(number: int, released: bool) -> float:
    """P of the two one-sided tests; NaN without a run, or for a published 0."""
    a, b = ours(number, released), theirs(number)
    if a is None or b.mean <= 0:
        return np.nan
    return max(one_sided(a, b, 1.2, -1.0), one_sided(a, b, 0.8, 1.0))


def identity(row: Row) -> tuple[str, ...]:
    """What two publications of one number share; one table repeats another's rows by a slip."""
    slip = row["table"] == "precondition-linear" and row["agent"].endswith("fglmcts")
    names = ("agent", "lam", "beta", "delta", "gamma", "metric", "mean", "std")
    return ("logistic-20" if slip else row["testbed"], *(row[name] for name in names))


@functools.cache
def once() -> tuple[int, ...]:
    """Numbers at their first publication."""
    first: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(published()):
        first.setdefault(identity(row), number)
    return tuple(first.values())


def holm_keeps(p: Sequence[float], level: float = 0.05) -> np.ndarray:
    """Which are found by Holm's rule, one after the other."""
    order, kept = np.argsort(p, kind="stable"), np.zeros(len(p), bool)
    for place, i in enumerate(order):
        if p[i] > level / (len(p) - place):
            break
        kept[i] = True
    return kept


def told(pattern: str) -> list[int]:
    match = re.search(pattern, PAGE)
    assert match is not None, pattern
    return [int(n.replace(",", "")) for n in match.groups()]


def test_numbers_agree_by_two_one_sided_tests() -> None:
    """Row by row, and in the sentence that says how many."""
    agree, explained = set(), set()
    for number in range(len(published())):
        if chance_of_equal(number, released=False) <= 0.05:
            agree.add(number)
        elif chance_of_equal(number, released=True) <= 0.05:
            explained.add(number)
    said = {
        word: {i for i, row in enumerate(verdicts()) if row["verdict"] == word}
        for word in ("agrees", "explained")
    }
    zeros = {i for i, row in enumerate(published()) if float(row["mean"]) <= 0}
    assert agree - zeros == said["agrees"] - zeros
    # Networks' rows that had no bonus may be explained by ours at λ = 0, which has no label.
    plain = {i for i in said["explained"] if verdicts()[i]["evidence"].startswith("ours at λ = 0")}
    assert explained - zeros == said["explained"] - plain - zeros
    unique = set(once())
    count, *counts = told(
        r"Of (\d+) published numbers (\d+) agree, (\d+) are explained by the released code, "
    )
    assert count == len(unique)
    assert counts == [len(unique & said["agrees"]), len(unique & said["explained"])]


def test_numbers_agree_by_intervals() -> None:
    """The other way round: a 90 % interval of the ratio by resampling normal means."""
    rng = np.random.default_rng(5)
    wrong = 0
    for number, row in enumerate(verdicts()):
        a, b = ours(number, released=False), theirs(number)
        if a is None or b.mean <= 0:
            continue
        draws = [
            s.mean + s.std / np.sqrt(s.size) * rng.standard_t(s.size - 1, 4000) for s in (a, b)
        ]
        low, high = (
            np.quantile(draws[0] - 1.2 * draws[1], 0.95),
            np.quantile(draws[0] - 0.8 * draws[1], 0.05),
        )
        wrong += (low < 0 < high) != (row["verdict"] == "agrees")
    # These draws have the degrees of freedom of each sample, Welch's test has one of both.
    assert wrong <= 8


def deciding(number: int) -> bool | None:
    """Whether the verdict rests on the released code; None where nothing was tested."""
    row = verdicts()[number]
    if row["verdict"] in ("not run yet", "cannot be run"):
        return None
    return row["verdict"] == "explained" or not row["ours_seeds"]


def test_holm_s_counts() -> None:
    """Of those that agree or are explained, rank by rank, from the p-values of both tables."""
    tested = [n for n in once() if deciding(n) is not None]
    rows = [verdicts()[n] for n in tested]
    equal = np.array([row["verdict"] in ("agrees", "explained") for row in rows])
    mine = []
    for n, row in zip(tested, rows, strict=True):
        p = chance_of_equal(n, released=bool(deciding(n)))
        mine.append(float(row["equivalence_p"] or 1.0) if np.isnan(p) else p)
    (kept,) = told(r"After Holm's correction for their number (\d+) agree or are explained")
    assert int((equal & holm_keeps(mine)).sum()) == pytest.approx(kept, abs=1)
    differ = np.array([row["verdict"] == "differs" for row in rows])
    p = [float(row["p"] or 1.0) for row in rows]
    (apart,) = told(r"agree or are explained, and (\d+) differ\.")
    assert int((differ & holm_keeps(p)).sum()) == pytest.approx(apart, abs=1)


def test_numbers_that_differ_are_apart_by_welch_s_test() -> None:
    for number, row in enumerate(verdicts()):
        a = ours(number, released=False)
        if row["verdict"] != "differs" or a is None:
            continue
        b = theirs(number)
        p = stats.ttest_ind_from_stats(*a, *b, equal_var=False).pvalue
        assert p <= 0.0101, row
    (count,) = told(r"released code, (\d+) differ\. ")
    assert count == sum(verdicts()[n]["verdict"] == "differs" for n in once())


# ---- the rank correlation of the front page -----------------------------------------------------


@functools.cache
def measured() -> pd.DataFrame:
    """Variance of the draws and regret of every measured run on linear-20, one row per seed."""
    names = ["agent", "settings", "rounds", "seed", "final_regret", "posterior"]
    rows = []
    for row in pq.read_table(ROOT / "results" / "linear-20.parquet", columns=names).to_pylist():
        for own in row["posterior"] or ():
            if own["measure"] == "trace":
                setting = str((row["agent"], row["settings"], row["rounds"]))
                values = [v for v in own["values"] if v is not None]
                rows.append((setting, row["seed"], row["final_regret"], np.mean(values)))
    return pd.DataFrame(rows, columns=["setting", "seed", "regret", "variance"])


def told_correlation() -> tuple[int, float, float, float, int]:
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    match = re.search(
        r"linear-20, (\d+) settings: a larger variance of the draws goes with a larger regret\. "
        r"Rank correlation ([+−][\d.]+) \[([+−][\d.]+), ([+−][\d.]+)\] \((\d+) seeds\)",
        page,
    )
    assert match is not None
    value, low, high = (float(t.replace("−", "-")) for t in match.groups()[1:4])
    return int(match[1]), value, low, high, int(match[5])


def test_the_rank_correlation_with_scipy() -> None:
    settings, value, low, high, seeds = told_correlation()
    frame = measured()
    assert frame["setting"].nunique() == settings
    each = [
        stats.spearmanr(own["regret"], own["variance"]).statistic
        for _, own in frame.groupby("seed")
        if len(own) == settings
    ]
    assert len(each) == seeds
    assert np.mean(each) == pytest.approx(value, abs=0.006)
    error = stats.t.ppf(0.975, seeds - 1) * np.std(each, ddof=1) / np.sqrt(seeds)
    assert np.mean(each) - error == pytest.approx(low, abs=0.02)
    assert np.mean(each) + error == pytest.approx(high, abs=0.02)


def test_the_rank_correlation_with_pandas() -> None:
    _, value, *_ = told_correlation()
    wide = {
        name: measured().pivot(index="setting", columns="seed", values=name).dropna(axis=1).rank()
        for name in ("regret", "variance")
    }
    both = wide["regret"].corrwith(wide["variance"])
    assert float(both.mean()) == pytest.approx(value, abs=0.006)
