"""What README says, computed again from `results/` alone and with none of our code, each twice.

Once row by row with Arrow and NumPy, once from tables of pandas.
"""

import csv
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats
from test_front_numbers import by_arrow, by_pandas, may_be_best, t_by_hand, t_by_scipy

ROOT = Path(__file__).resolve().parents[1]
README = " ".join((ROOT / "README.md").read_text().split())
FOLDER = ROOT / "docs" / "results"
FINDINGS = README[README.index("## What we found") : README.index("## More")]
ADVICE = README[README.index("## Which agent") : README.index("## What we found")]
#: Ranked agents need so many seeds.
FEWEST = 20
Row = dict[str, Any]
NAMES = ["agent", "settings", "testbed_settings", "studies", "rounds", "seed", "final_regret"]
CURVE = ["curve_rounds", "curve_regret"]


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@functools.cache
def rows(testbed: str, study: str) -> list[Row]:
    """One per run and seed, with settings as dictionaries."""
    file = ROOT / "results" / f"{testbed}.parquet"
    found = pq.read_table(file, columns=[*NAMES, *CURVE]).to_pylist()
    own = [row for row in found if study in row["studies"]]
    return [
        {**r, "settings": json.loads(r["settings"]), "bed": json.loads(r["testbed_settings"])}
        for r in own
    ]


def regrets(testbed: str, study: str, agent: str, **settings: Any) -> np.ndarray:
    """Of the one run with these settings, by seed."""
    own = [
        row
        for row in rows(testbed, study)
        if row["agent"] == agent
        and settings.items() <= {**row["settings"], "world": row["bed"].get("world")}.items()
    ]
    by_seed = {row["seed"]: row["final_regret"] for row in own}
    assert len(by_seed) == len(own) >= FEWEST, (testbed, study, agent, settings)
    return np.array([by_seed[seed] for seed in sorted(by_seed)])


@functools.cache
def frame(testbed: str) -> pd.DataFrame:
    """The file with a column per setting."""
    table = pd.read_parquet(ROOT / "results" / f"{testbed}.parquet", columns=NAMES)
    parts = [
        pd.json_normalize([json.loads(text) for text in table[name]])
        for name in ("settings", "testbed_settings")
    ]
    parts[1] = parts[1].add_prefix("bed_")
    return pd.concat([table.drop(columns=["settings", "testbed_settings"]), *parts], axis=1)


def series(testbed: str, query: str, study: str = "") -> pd.Series:
    """Final regrets by seed of the run that a query finds."""
    table = frame(testbed)
    chosen = table[[not study or study in own for own in table["studies"]]].query(query)
    assert chosen["seed"].is_unique and len(chosen) >= FEWEST, (testbed, query)
    return chosen.set_index("seed")["final_regret"].sort_index()


# The bonus -----------------------------------------------------------------------------------

WORLD = "bed_copies == 1 and bed_noise == 1 and bed_prior == 1 and bed_horizon == 10000"


def told_of_the_world() -> dict[tuple[str, str], float]:
    """By agent and world: plain, with the bonus, hotter."""
    told = re.search(
        r"linear-trap-80, it takes the mean regret of exact draws from ([\d,]+) to (\d+)\. "
        r".* In the mirror image the means are (\d+) and (\d+)\. "
        r"Wider draws without it, at temperature 4, have (\d+) and (\d+)\.",
        FINDINGS,
    )
    assert told is not None
    keys = [(who, w) for w in ("bad", "mirror") for who in ("plain", "bonus")]
    keys += [("hot", w) for w in ("bad", "mirror")]
    return dict(zip(keys, map(number, told.groups()), strict=True))


def test_what_the_bonus_does_where_the_prior_is_wrong() -> None:
    wanted = {
        "plain": ("exact-ts", {"temperature": 1.0}),
        "bonus": ("exact-fgts", {"lam": 1.0, "lam_schedule": "sqrt"}),
        "hot": ("exact-ts", {"temperature": 4.0}),
    }
    for (who, world), mean in told_of_the_world().items():
        agent, settings = wanted[who]
        own = [
            row["final_regret"]
            for row in rows("linear-trap-80", "worlds-frontier")
            if row["agent"] == agent
            and (row["rounds"], row["bed"]["copies"]) == (10_000, 1)
            and (row["bed"]["noise"], row["bed"]["prior"]) == (1.0, 1.0)
            and row["bed"]["world"] == world
            and settings.items() <= row["settings"].items()
        ]
        assert len(own) == 100
        assert float(np.mean(own)) == pytest.approx(mean, abs=0.5)


def test_what_the_bonus_does_where_the_prior_is_wrong_with_pandas() -> None:
    queries = {
        "plain": "agent == 'exact-ts' and temperature == 1",
        "bonus": "agent == 'exact-fgts' and lam == 1 and lam_schedule == 'sqrt'",
        "hot": "agent == 'exact-ts' and temperature == 4",
    }
    for (who, world), mean in told_of_the_world().items():
        query = f"{WORLD} and {queries[who]} and bed_world == '{world}' and rounds == 10000"
        assert series("linear-trap-80", query).mean() == pytest.approx(mean, abs=0.5)


def test_most_seeds_are_lucky_without_the_bonus_and_some_never_are() -> None:
    """Medians, and who still plays an arm that is worse by 0.5 in the last 500 rounds."""
    told = re.search(
        r"The median goes from (\d+) to (\d+): without it (\d+) of 100 seeds play", FINDINGS
    )
    assert told is not None
    *medians, stuck = map(number, told.groups())
    queries = (
        "agent == 'exact-ts' and temperature == 1",
        "agent == 'exact-fgts' and lam == 1 and lam_schedule == 'sqrt'",
    )
    for query, median, count in zip(queries, medians, (stuck, 0), strict=True):
        own = f"{WORLD} and {query} and bed_world == 'bad' and rounds == 10000"
        assert series("linear-trap-80", own).median() == pytest.approx(median, abs=0.5)
        (agent,) = re.findall(r"exact-\w+", query)
        last = [
            row["curve_regret"][-1] - np.interp(9_500, row["curve_rounds"], row["curve_regret"])
            for row in rows("linear-trap-80", "worlds-frontier")
            if row["agent"] == agent
            and (row["rounds"], row["bed"]["copies"]) == (10_000, 1)
            and (row["bed"]["noise"], row["bed"]["prior"]) == (1.0, 1.0)
            and row["bed"]["world"] == "bad"
            and row["settings"].get("temperature", 1.0) == 1.0
            and row["settings"].get("lam_schedule", "sqrt") == "sqrt"
            and row["settings"].get("lam", 1.0) == 1.0
        ]
        assert len(last) == 100
        assert sum(value > 125 for value in last) == count


FALLING = {"lam": 1.0, "lam_schedule": "sqrt"}
#: What rounding to three digits, such as 10.1, changes at most.
THREE_DIGITS = 5e-3
#: Study, agent and settings: without the bonus and with it.
LINEAR = (
    ("question-temperature", "fglmcts", {"lam": 0.0, "temperature": 1.0}),
    ("question-falling-linear", "fglmcts", FALLING),
)
NETWORKS = (
    ("question-falling-neural", "neural-lmcts", {}),
    ("question-falling-neural", "neural-fglmcts", FALLING),
)


def told_costs() -> dict[str, tuple[float, float, float, float]]:
    """By testbed: what the bonus adds, its interval, and to what."""
    told = re.findall(
        r"([+−][\d.,]+) \[([+−][\d.,]+), ([+−][\d.,]+)\] to ([\d.,]+) on ([\w-]+)", FINDINGS
    )
    found = {bed: (number(a), number(b), number(c), number(d)) for a, b, c, d, bed in told}
    assert list(found) == ["linear-20", "linear-40", "adult"]
    assert FINDINGS.count("[+") + FINDINGS.count("[−") == len(found), "no other interval"
    return found


def bootstrapped(differences: np.ndarray) -> tuple[float, float]:
    """A studentised bootstrap interval of the mean."""
    n, mean = len(differences), differences.mean()
    drawn = differences[np.random.default_rng(11).integers(0, n, (20_000, n))]
    error = differences.std(ddof=1) / np.sqrt(n)
    t = (drawn.mean(axis=1) - mean) / (drawn.std(axis=1, ddof=1) / np.sqrt(n))
    low, high = np.quantile(t, [0.025, 0.975])
    return mean - high * error, mean - low * error


def test_what_the_bonus_costs_by_a_bootstrap() -> None:
    for testbed, (mean, low, high, base) in told_costs().items():
        pair = LINEAR if testbed.startswith("linear") else NETWORKS
        without, bonus = (regrets(testbed, *place, **own) for *place, own in pair)
        differences = bonus - without
        assert without.mean() == pytest.approx(base, rel=1e-3)
        assert differences.mean() == pytest.approx(mean, rel=THREE_DIGITS)
        np.testing.assert_allclose(bootstrapped(differences), (low, high), atol=0.1 * (high - low))


def test_what_the_bonus_costs_by_students_t() -> None:
    """With pandas; Student's interval knows nothing of skewness, and may be off by more."""
    for testbed, (mean, low, high, base) in told_costs().items():
        found = []
        for study, agent, own in LINEAR if testbed.startswith("linear") else NETWORKS:
            query = " and ".join(
                [f"agent == '{agent}'", *(f"{k} == {v!r}" for k, v in own.items())]
            )
            found.append(series(testbed, query, study))
        plain, bonus = found
        ends = stats.ttest_1samp(bonus - plain, 0.0).confidence_interval(0.95)
        assert plain.mean() == pytest.approx(base, rel=1e-3)
        assert (bonus - plain).mean() == pytest.approx(mean, rel=THREE_DIGITS)
        np.testing.assert_allclose((ends.low, ends.high), (low, high), atol=0.2 * (high - low))


def test_the_page_that_it_links_to_says_the_same() -> None:
    page = "".join((FOLDER / name).read_text() for name in ("worlds.md", "worlds-sweeps.md"))
    for interval in re.findall(r"\+[\d.]+ \[[−+][\d.]+, \+[\d.]+\]", FINDINGS):
        assert interval in page


# Networks ------------------------------------------------------------------------------------


def stuck_from(rounds: int) -> float:
    """Halfway from the forest's regret to that of chance over 500 rounds of adult, by hand."""
    sticks = pd.read_csv(ROOT / "results" / "yardsticks.csv")
    paper = sticks["settings"].str.contains('"preprocess": "paper"')
    (line,) = sticks[(sticks["testbed"] == "adult") & (sticks["rounds"] == rounds) & paper].index
    return float((sticks["uniform"] + sticks["learner"])[line] / 2 / rounds * 500)


def test_it_counts_the_seeds_that_are_stuck() -> None:
    """A seed that never leaves the wrong arm has over half of the regret."""
    told = re.search(r"(\d+) of (\d+) seeds of `neural-lmcts` never leave", FINDINGS)
    assert told is not None
    own = [r for r in rows("adult", "data-adult") if r["agent"] == "neural-lmcts"]
    stuck = {row["seed"] for row in own if row["final_regret"] > 0.5 * row["rounds"]}
    assert (len(stuck), len(own)) == (int(told[1]), int(told[2]))
    assert stuck.isdisjoint(range(5)), "none of the first five"
    page = (FOLDER / "bonus-neural.md").read_text()
    assert f"`neural-lmcts` on adult: {told[1]} of {told[2]} [" in page
    # Once more, by the last rounds: nearer to chance than to the forest of the yardsticks.
    table = pd.read_parquet(ROOT / "results" / "adult.parquet")
    table = table[["data-adult" in studies for studies in table["studies"]]]
    last = table[table["agent"] == "neural-lmcts"].set_index("seed")["simple_regret"]
    assert set(last.index[last >= stuck_from(10_000)]) == stuck
    assert len(last) == len(own)


def wrong_from(rounds: int) -> float:
    """Halfway from chance to the worse of two arms over 500 rounds of adult, by hand."""
    sticks = pd.read_csv(ROOT / "results" / "yardsticks.csv")
    paper = sticks["settings"].str.contains('"preprocess": "paper"')
    (line,) = sticks[(sticks["testbed"] == "adult") & (sticks["rounds"] == rounds) & paper].index
    worse = rounds - sticks["fixed"][line]
    return float((sticks["uniform"][line] + worse) / 2 / rounds * 500)


def test_it_says_what_frees_networks() -> None:
    """Three shares of seeds on the wrong arm: those of the page, and twice those of the results."""
    told = re.search(
        r"(\d+) % of seeds are on it without the bonus, (\d+) % with its weight 0.1, and (\d+) %",
        FINDINGS,
    )
    assert told is not None
    wanted = (
        ("neural-lmcts", {"lr": 0.005, "beta": 775.5, "batch": 256}),
        ("neural-fglmcts", {"lr": 0.005, "beta": 775.5, "batch": 256, "lam": 0.1, "b": 10.0}),
        ("neural-soft-fglmcts", {"lam": 0.1, "softness": 100.0, "beta": 775.5}),
    )
    names = [*NAMES, "simple_regret", "curve_rounds", "curve_regret"]
    found = pq.read_table(ROOT / "results" / "adult.parquet", columns=names).to_pylist()
    for share, (agent, settings) in zip(told.groups(), wanted, strict=True):
        own = [
            row
            for row in found
            if row["agent"] == agent
            and "question-stuck" in row["studies"]
            and settings.items() <= json.loads(row["settings"]).items()
        ]
        assert len(own) == 100 and {row["rounds"] for row in own} == {2_000}
        last = [row["simple_regret"] for row in own]
        assert sum(value >= wrong_from(2_000) for value in last) == int(share)
        # Again from the curves: what was lost after about three quarters of the run.
        counted = 0
        for row in own:
            place = int(np.searchsorted(row["curve_rounds"], 1_500))
            lost = row["final_regret"] - row["curve_regret"][place]
            rate = lost / (2_000 - row["curve_rounds"][place])
            counted += rate >= wrong_from(2_000) / 500
        assert counted == pytest.approx(int(share), abs=2)
    page = (FOLDER / "stuck-networks.md").read_text()
    lines = ("the paper's settings, no bonus", "λ = 0.1", "λ = 0.1, softness 100")
    for share, line in zip(told.groups(), lines, strict=True):
        assert f"| {line} | {share} % [" in page


def test_it_counts_what_agrees() -> None:
    """Word by word what the page of agreement begins with; that is computed again elsewhere."""
    page = (FOLDER / "agreement.md").read_text()
    told = re.search(r"After Holm's correction .* found by trying\.", page)
    assert told is not None
    assert told[0] in FINDINGS


# Advice --------------------------------------------------------------------------------------


def test_the_networks_it_advises_have_the_lowest_means() -> None:
    """Of those with enough seeds, with pandas and without; no data set of the front page lacks."""
    text = ADVICE[ADVICE.index("will not do**") :]
    named = re.findall(r"`([\w-]+)` on (\w+)", text)
    front = (FOLDER / "README.md").read_text()
    first = re.findall(r"^\| Networks: (\w+) \| `([\w-]+)`", front, re.MULTILINE)
    assert [(agent, bed) for bed, agent in first] == named
    for agent, bed in named:
        own = rows(bed, f"data-{bed}")
        seeds = {
            name: [r["final_regret"] for r in own if r["agent"] == name] for name in agents(own)
        }
        means = {name: np.mean(v) for name, v in seeds.items() if len(v) >= FEWEST}
        assert min(means, key=lambda name: means[name]) == agent
        table = frame(bed)
        table = table[[f"data-{bed}" in studies for studies in table["studies"]]]
        grouped = table.groupby("agent")["final_regret"].agg(["mean", "count"])
        assert grouped[grouped["count"] >= FEWEST]["mean"].idxmin() == agent
    told = re.search(
        r"majority class, ([\d,]+) against ([\d,]+); the median of `neural-ucb`, ([\d,]+)", text
    )
    assert told is not None
    mean, fixed, median = map(number, told.groups())
    best = regrets("adult", "data-adult", "neural-ucb")
    assert (best.mean(), np.median(best)) == pytest.approx((mean, median), abs=0.5)
    best_again = series("adult", "agent == 'neural-ucb'", "data-adult")
    assert (best_again.mean(), best_again.median()) == pytest.approx((mean, median), abs=0.5)
    assert median < fixed < mean
    sticks = pd.read_csv(ROOT / "results" / "yardsticks.csv").query("testbed == 'adult'")
    assert fixed == pytest.approx(sticks.query("rounds == 10000")["fixed"].iloc[0], abs=0.5)


def agents(own: list[Row]) -> set[str]:
    return {row["agent"] for row in own}


def test_so_many_settings_and_seeds_are_behind_the_ranking() -> None:
    """Tuned on seeds that are never compared; an agent without settings has one candidate."""
    told = re.search(r"tuned on (\d+) settings, then (\d+) other seeds", ADVICE)
    assert told is not None
    settings, seeds = map(int, told.groups())
    tried = pd.read_csv(ROOT / "results" / "searches.csv").query("study == 'ranking'")
    assert set(tried.groupby(["testbed", "agent"]).size()) == {1, settings}
    with (ROOT / "results" / "searches.csv").open(newline="") as file:
        first = min(int(r["first_seed"]) for r in csv.DictReader(file) if r["study"] == "ranking")
    for testbed in tried["testbed"].unique():
        own = rows(testbed, "ranking")
        compared = {row["seed"] for row in own}
        assert len(compared) == seeds and max(compared) < first
        table = pd.read_parquet(ROOT / "results" / f"{testbed}.parquet")
        table = table[["ranking" in studies for studies in table["studies"]]]
        assert set(table.groupby("agent")["seed"].nunique()) == {seeds}


def test_it_advises_what_the_ranking_says() -> None:
    """Each agent that it recommends may be the best, and each figure is that of the results."""
    advice = re.findall(r"- (\*\*.*?)(?= - \*\*|$)", ADVICE[: ADVICE.index("- **Tables")].strip())
    beds = (["linear-20", "linear-40"], ["logistic-20"], ["wheel-0.5"])
    for line, testbeds in zip(advice, beds, strict=True):
        recommended, _, rest = line.partition(". ")
        named = re.findall(r"`([\w-]+)`", recommended)
        for testbed in testbeds:
            assert set(named) <= set(may_be_best(by_arrow(testbed, "ranking"), t_by_hand))
            assert set(named) <= set(may_be_best(by_pandas(testbed, "ranking"), t_by_scipy))
        if len(testbeds) > 1:
            assert "has the lowest regret on linear-20 and linear-40" in rest
            for testbed in testbeds:
                lowest = {
                    a: regrets(testbed, "ranking", a).mean()
                    for a in agents(rows(testbed, "ranking"))
                }
                assert min(lowest, key=lambda name: lowest[name]) == named[0]
            continue
        (testbed,) = testbeds
        told = [
            number(t)
            for t in re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w.])", rest.rstrip("."))
        ]
        players = re.findall(r"`([\w-]+)`", line)
        means = [regrets(testbed, "ranking", agent).mean() for agent in players]
        np.testing.assert_allclose(told, means, rtol=1e-3)
        again = [series(testbed, f"agent == '{agent}'", "ranking").mean() for agent in players]
        np.testing.assert_allclose(told, again, rtol=1e-3)
