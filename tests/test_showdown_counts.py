"""The counts of agreement and the rank correlation computed again, with none of our statistics.

From `results/` and the table of published numbers alone. Differences are tested in two ways: with
SciPy and random draws, and written out, without any random number. Equality is tested by t-tests
and by intervals. The correlation is computed once with SciPy, once with pandas.
"""

import csv
import functools
import re
from collections import Counter
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
#: Verdicts; the first three are settled.
WORDS = ("agrees", "explained", "differs", "too uncertain to tell", "not run yet")


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


def values_of(number: int, released: bool) -> np.ndarray | None:
    """Regrets that may be tested: of 20 seeds or more, but for CIFAR-10.

    What stands beside the wheel is not the released code. Networks' Langevin agents with a bonus
    had none there: where the code was not run, ours without a bonus stand for it.
    """
    row = published()[number]
    if released and row["testbed"].startswith("wheel"):
        return None
    values = beside().get((number, released))
    if values is None and released and row["agent"] in ("neural-fglmcts", "neural-sfglmcts"):
        alike = {**row, "agent": "neural-lmcts"}
        names = ("testbed", "agent", "metric")
        plain = next(i for i, p in enumerate(published()) if all(p[n] == alike[n] for n in names))
        values = beside().get((plain, False))
    if values is None or (len(values) < 20 and row["testbed"] != "cifar10"):
        return None
    return values


def sample(values: np.ndarray) -> Sample:
    """Of chains that did not diverge."""
    kept = values[np.isfinite(values)]
    return Sample(float(kept.mean()), float(kept.std(ddof=1)), len(kept))


def ours(number: int, released: bool) -> Sample | None:
    """Of runs of which no chain diverged."""
    values = values_of(number, released)
    return None if values is None or not np.isfinite(values).all() else sample(values)


def one_sided(a: Sample, b: Sample, ratio: float, side: float, shift: float = 0.0) -> float:
    """P of a mean so far on this side of `ratio` times the other, by Welch's test."""
    parts = a.std**2 / a.size, (ratio * b.std) ** 2 / b.size
    gap, error = side * (a.mean - ratio * b.mean - shift), np.sqrt(sum(parts))
    if error == 0:
        return 0.0 if gap > 0 else 1.0
    df = sum(parts) ** 2 / (parts[0] ** 2 / (a.size - 1) + parts[1] ** 2 / (b.size - 1))
    return float(stats.t.sf(gap / error, df))


def chance_of_equal(number: int, released: bool) -> float:
    """P of the two one-sided tests; NaN without a run. A published 0 is one up to its rounding."""
    a, b = ours(number, released), theirs(number)
    if a is None:
        return np.nan
    if b.mean <= 0:
        return max(one_sided(a, b, 1.0, -1.0, 0.05), one_sided(a, b, 1.0, 1.0, -0.05))
    return max(one_sided(a, b, 1.2, -1.0), one_sided(a, b, 0.8, 1.0))


# Two ways to say how likely a difference is. Each is the larger one of Welch's test and of the
# chance that as many of our seeds as were published have a mean as far away.


def by_draws(values: np.ndarray, b: Sample) -> float:
    """With SciPy's Welch test, and means of resampled seeds."""
    kept = values[np.isfinite(values)]
    p = float(stats.ttest_ind_from_stats(*sample(kept), *b, equal_var=False).pvalue)
    if p > 0.05:
        return p  # Neither a verdict nor a correction asks for more.
    means = np.random.default_rng(8).choice(kept, (b.size, DRAWS)).mean(0)
    return max(p, float(np.mean(abs(means - kept.mean()) >= abs(b.mean - kept.mean()))))


def by_convolution(values: np.ndarray, b: Sample) -> float:
    """With Welch's test written out, and the law of a sum of so many seeds by Fourier's transform.

    No random number is used. The seeds are put on a grid of 4,096 points from the least to the
    largest.
    """
    kept = values[np.isfinite(values)]
    a = sample(kept)
    p = 2.0 * min(one_sided(a, b, 1.0, 1.0), one_sided(a, b, 1.0, -1.0))
    low, width = kept.min(), np.ptp(kept)
    if p > 0.05 or width == 0:
        return p
    places = np.rint((kept - low) / width * 4_095).astype(int)
    one = np.bincount(places, minlength=4_096 * b.size) / len(kept)
    law = np.fft.irfft(np.fft.rfft(one) ** b.size, len(one))
    means = low + np.arange(len(one)) * width / 4_095 / b.size
    far = np.abs(means - kept.mean()) >= abs(b.mean - kept.mean()) - 1e-9 * width
    return max(p, float(np.clip(law[far].sum(), 0.0, 1.0)))


DRAWS = 100_000
WAYS = {"draws": by_draws, "convolution": by_convolution}


@functools.cache
def chance_of_difference(way: str, number: int, released: bool) -> float:
    values = values_of(number, released)
    return np.nan if values is None else WAYS[way](values, theirs(number))


class Judged(NamedTuple):
    """A verdict, and the reading that it rests on."""

    verdict: str
    released: bool


def judged(way: str, number: int) -> Judged:
    """The rules of docs/verdicts.md, from regrets by seed alone."""
    for released, word in ((False, "agrees"), (True, "explained")):
        if chance_of_equal(number, released) <= 0.05:
            return Judged(word, released)
    own = beside().get((number, False))
    reading = own is None
    values = values_of(number, reading)
    if values is None:
        untried = own is None and beside().get((number, True)) is None
        return Judged("not run yet" if untried else "too uncertain to tell", reading)
    diverged = not np.isfinite(values).all()
    apart = chance_of_difference(way, number, reading) <= 0.01
    return Judged("differs" if diverged or apart else "too uncertain to tell", reading)


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
        if not p[i] <= level / (len(p) - place):
            break
        kept[i] = True
    return kept


def told(pattern: str) -> list[int]:
    match = re.search(pattern, PAGE)
    assert match is not None, pattern
    return [int(n.replace(",", "")) for n in match.groups()]


@pytest.mark.parametrize("way", WAYS)
def test_every_verdict(way: str) -> None:
    """Row by row; where p is within an eighth of the level, chance may decide otherwise."""
    wrong = []
    for number, row in enumerate(verdicts()):
        found = judged(way, number)
        if found.verdict != row["verdict"]:
            p = chance_of_difference(way, number, found.released)
            if not 0.00875 < p < 0.01125:
                wrong.append((number, row["verdict"], found.verdict, p))
    assert wrong == []


@functools.cache
def all_tests() -> tuple[tuple[int, bool], ...]:
    """Numbers with the readings in which they are tested: the text's, the code's or both."""
    return tuple((n, r) for n in once() for r in (False, True) if values_of(n, r) is not None)


@functools.cache
def settled(way: str) -> Mapping[int, str]:
    """Numbers whose verdict stands after Holm's correction."""
    tests = all_tests()
    close = np.array([chance_of_equal(*one) for one in tests])
    apart = np.array([chance_of_difference(way, *one) for one in tests])
    kept = {
        True: dict(zip(tests, holm_keeps(close), strict=True)),
        False: dict(zip(tests, holm_keeps(apart), strict=True)),
    }
    found = {n: judged(way, n) for n in once()}
    return {
        n: verdict
        for n, (verdict, released) in found.items()
        if verdict in WORDS[:3] and kept[verdict != "differs"].get((n, released), False)
    }


@pytest.mark.parametrize("way", WAYS)
def test_the_headline(way: str) -> None:
    """All counts before and after Holm's correction; every test that was made counts."""
    assert told(r"After Holm's correction for (\d+) tests, of (\d+) published") == [
        len(all_tests()),
        len(once()),
    ]
    corrected = Counter(settled(way).values())
    assert told(
        r"numbers (\d+) agrees? with ours within 20 %, (\d+) (?:are|is) explained by the released"
    ) == [corrected["agrees"], corrected["explained"]]
    # Which of the smallest chances are below 0.0001 is seen with an error of a tenth.
    (differ,) = told(r"by the released code and (\d+) differs?\.")
    assert corrected["differs"] == pytest.approx(differ, abs=2)
    (wheel,) = told(r"differs?\. (\d+) of these are the wheel's")
    found = (n for n, verdict in settled(way).items() if verdict == "differs")
    assert sum(published()[n]["testbed"].startswith("wheel") for n in found) == wheel
    said = told(
        r"Without correction (\d+) agrees?, (\d+) (?:are|is) explained, (\d+) differs?, "
        r"(\d+) (?:are|is) too uncertain to tell and (\d+) (?:are|is) not run yet\."
    )
    assert sum(said) == len(once()), "all numbers are in one of them"
    counts = Counter(judged(way, n).verdict for n in once())
    np.testing.assert_allclose(said, [counts[word] for word in WORDS], atol=1)


def test_the_opening_table() -> None:
    """Of all 545, and of each number once; settled are those that Holm's correction keeps."""
    cells = dict(
        re.findall(r"^\| (.*) \| (\d+) \|$", PAGE[: PAGE.index("A number *agrees*")], re.M)
    )
    words = Counter(row["verdict"] for row in verdicts())
    assert int(cells["published"]) == len(published()) == words.total()
    assert int(cells["not run yet"]) == words["not run yet"]
    assert int(cells["cannot be run"]) == words["cannot be run"]
    assert int(cells["with a verdict"]) == len(published()) - words["not run yet"]
    assert int(cells["published, each number once"]) == len(once())
    kept = int(cells["settled after Holm's correction"])
    assert kept == pytest.approx(len(settled("convolution")), abs=2)
    assert kept + int(cells["not settled after it"]) == len(once())


#: Nothing of the released code can be run for these.
NO_CODE = ("financial", "restaurant", "cifar10", "jester")


def beside_the_code(number: int) -> str:
    """What is known of a number that differs, by the words of the page."""
    testbed = published()[number]["testbed"]
    if testbed.startswith("wheel"):
        return "the wheel's: no right agent can have them"
    if values_of(number, released=True) is None:
        ways = ("has not been run", "cannot be run")
        return f"the released code {ways[testbed in NO_CODE]}"
    if chance_of_difference("convolution", number, True) <= 0.01:
        return "the released code's run differs, too"
    return "the released code's run is not told apart from them"


def test_what_is_known_of_those_that_differ() -> None:
    table = PAGE[PAGE.index("## The numbers that differ") :].split("\n## ")[0]
    said = {what: int(n) for what, n in re.findall(r"^\| (.*) \| (\d+) \|$", table, re.M)}
    found = Counter(beside_the_code(n) for n in once() if verdicts()[n]["verdict"] == "differs")
    assert said.pop("all") == found.total() == sum(said.values())
    assert said == found


def fitted_to(number: int) -> set[str]:
    """Choices fitted to the tables on which this number rests, written down once more."""
    row, verdict = published()[number], verdicts()[number]["verdict"]
    model = re.match(r"(linear|logistic)-", row["testbed"])
    slip = row["table"] == "precondition-linear" and row["agent"].endswith("fglmcts")
    code = verdict == "explained" and (row["testbed"].startswith("logistic") or slip)
    five = row["table"] in ("main", "other", "precondition-logistic") and not (
        "fg" in row["agent"] and row["table"] != "main"
    )
    holds = {
        "the temperatures": model and row["agent"].endswith(("lmcts", "malats")),
        "5 arms × 8 dimensions of linear-40": row["testbed"] == "linear-40",
        "the 20 warm-up steps of MALA": model and row["agent"].endswith("malats"),
        "contexts of length 1 beside an unscaled θ* of logistic bandits (`scaling = arms`)": code,
        "5 arms, η and the step of the main logistic column there": code and five,
    }
    if verdict not in ("agrees", "explained"):
        return set()
    return {what for what, rests in holds.items() if rests}


@pytest.mark.parametrize("way", WAYS)
def test_fitted_choices_are_named_and_counted(way: str) -> None:
    for number, row in enumerate(verdicts()):
        assert set(filter(None, row["fitted"].split("; "))) == fitted_to(number), number
    rest = {n for n in once() if fitted_to(n)}
    equal = {n for n, verdict in settled(way).items() if verdict != "differs"}
    assert told(r"(\d+) of the (\d+) and (\d+) of the (\d+) that agree or are explained rest") == [
        len(rest & equal),
        len(equal),
        len(rest),
        sum(verdicts()[n]["verdict"] in ("agrees", "explained") for n in once()),
    ]
    counts = Counter(what for n in once() for what in fitted_to(n))
    said = re.findall(r"^- (.*): (\d+)[;.]$", PAGE, re.M)
    assert {what: int(n) for what, n in said} == counts
    (tried,) = told(r"(\d+) on a logistic environment found by trying")
    assert tried == counts[said[3][0]]


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


# ---- what docs/released.md says by hand ---------------------------------------------------------

RELEASED = (ROOT / "docs" / "released.md").read_text()
NAMES = {
    "LinUCB": "linucb",
    "LinTS": "lints",
    "ε-greedy": "epsgreedy",
    "SVRG-LMCTS": "svrglmcts",
    "FG-MALATS, λ = 0.01, β = 1,": "fgmalats",
}


def shown(value: Sample) -> str:
    return f"{value.mean:,.1f} ± {value.std:,.1f}"


def test_the_page_of_the_released_code_has_these_numbers() -> None:
    rows = re.findall(
        r"^\| (\S.*) on (linear-\d+) \| (.*) \| (.*) \| (\d+) \| (.*) \|$", RELEASED, re.M
    )
    assert len(rows) == 7
    for name, testbed, their, released, seeds, said in rows:
        agent = NAMES[name]
        table = "lambda-linear-20-b1" if agent == "fgmalats" else "main"
        number = next(
            i
            for i, p in enumerate(published())
            if (p["table"], p["testbed"], p["agent"]) == (table, testbed, agent)
            and (agent != "fgmalats" or float(p["lam"]) == 0.01)
        )
        code = ours(number, released=True)
        assert code is not None
        assert (shown(theirs(number)), shown(code), str(code.size)) == (their, released, seeds)
        assert (chance_of_equal(number, released=True) <= 0.05) == said.startswith("equal")
        assert (chance_of_equal(number, released=False) <= 0.05) == said.endswith("the text's")
        if not said.startswith("equal"):
            assert chance_of_difference("convolution", number, True) > 0.01
            assert judged("convolution", number).verdict == "differs"


def test_the_logistic_column_with_five_arms() -> None:
    own = [
        n
        for n, p in enumerate(published())
        if (p["table"], p["testbed"]) == ("main", "logistic-20") and ours(n, released=True)
    ]
    equal = [n for n in own if chance_of_equal(n, released=True) <= 0.05]
    apart = [n for n in own if chance_of_difference("convolution", n, True) <= 0.01]
    said = re.search(
        r"(\d+) numbers of it were run .* (\d+) is equal within 20 %, (\d+) differ, and (\d+) are",
        " ".join(RELEASED.split()),
    )
    assert said is not None and not {*equal} & {*apart}
    counts = [int(n) for n in said.groups()]
    left = len(own) - len(equal) - len(apart)
    assert counts == [len(own), len(equal), len(apart), left]


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
