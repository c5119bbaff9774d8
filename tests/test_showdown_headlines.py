"""Every headline computed twice more from `results/`, with plain NumPy and none of our code.

Once seed by seed, as a mean of paired differences with a bootstrap of its own; once by ratios of
means from a table that pandas reads. The front page must say the same.
"""

import functools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(
    r"^\| (?P<said>.+?) \| \*\*(?P<verdict>.+?)\*\* \| (?P<value>[+−][\d.,]+) % "
    r"\[(?P<low>[+−][\d.,]+), (?P<high>[+−][\d.,]+)\] \| \[(?P<pairs>\d+) pairs?, (?P<seeds>\d+)"
    r"(?: to \d+)? seeds\]\((?P<page>[\w-]+\.md)\) \|$",
    re.MULTILINE,
)
Row = dict[str, Any]
LINEAR = ("linear-20", "linear-40")
#: Data sets of the paper, as far as there are runs.
DATA = tuple(
    name
    for name in (
        *("adult", "cifar10", "covertype", "financial", "jester"),
        *("magic", "mnist", "mushroom", "restaurant", "shuttle"),
    )
    if (ROOT / "results" / f"{name}.parquet").exists()
)


#: Settings of the kernel, which a bonus leaves alone.
KERNEL = ("schedule", "beta", "eta", "steps", "step", "warmup_steps")


class Headline(NamedTuple):
    """Which runs the claim is about, and which run stands beside one of them."""

    testbeds: tuple[str, ...]
    studies: str
    chosen: Callable[[Row], bool]
    #: Studies of the run beside it, and whether a run is that one.
    beside: str
    partner: Callable[[Row, Row], bool]


def same(*names: str) -> Callable[[Row, Row], bool]:
    return lambda a, b: all(a["settings"].get(n) == b["settings"].get(n) for n in names)


def plain(a: Row, b: Row) -> bool:
    """The same agent without its bonus, by name or by λ = 0."""
    bare = a["agent"].replace("sfg", "").replace("fg", "")
    zero = b["settings"].get("lam") == 0 and b["agent"].replace("sfg", "").replace("fg", "") == bare
    return (b["agent"] == bare or zero) and same(*KERNEL)(a, b)


def sound(row: Row) -> bool:
    return row["settings"].get("schedule") == "curvature"


def of(row: Row, agent: str, **settings: Any) -> bool:
    return row["agent"] == agent and all(row["settings"].get(k) == v for k, v in settings.items())


def weight(row: Row) -> float:
    return row["settings"].get("lam") or 0.0


def unsmoothed(row: Row) -> bool:
    return "fg" in row["agent"] and "sfg" not in row["agent"]


HEADLINES = {
    "a small bonus (λ = 0.01) beats none": Headline(
        LINEAR,
        r"table-lambda-linear-\d+-b1000",
        lambda r: unsmoothed(r) and weight(r) == 0.01,
        ".*",
        plain,
    ),
    "larger bonuses help when posterior samples are accurate": Headline(
        LINEAR,
        "question-lambda",
        lambda r: "fg" in r["agent"] and weight(r) >= 0.1,
        "question-lambda",
        plain,
    ),
    "feel-good sampling generally beats plain sampling in logistic bandits": Headline(
        ("logistic-20",),
        "question-bonus-scale",
        lambda r: weight(r) in (0.01, 0.1) and r["settings"]["bonus_on"] == "mean",
        "question-bonus-scale",
        lambda a, b: weight(b) == 0 and same("bonus_on")(a, b),
    ),
    "feel-good sampling tends to be weaker with networks": Headline(
        DATA,
        "data-.*",
        lambda r: r["agent"] in ("neural-fglmcts", "neural-sfglmcts"),
        "data-.*",
        # On covertype the paper gives them another temperature than the plain agent.
        lambda a, b: b["agent"] == "neural-lmcts" and same("beta")(a, b),
    ),
    "NeuralUCB and ε-greedy beat Langevin sampling": Headline(
        DATA,
        "data-.*",
        lambda r: r["agent"] in ("neural-ucb", "neural-eps-greedy"),
        "data-.*",
        lambda a, b: b["agent"] == "neural-lmcts",
    ),
    "smoothing the bonus lessens its cost": Headline(
        LINEAR,
        "question-smoothing",
        lambda r: r["agent"] == "sfglmcts",
        "question-smoothing",
        lambda a, b: b["agent"] == "fglmcts" and same("lam", "b")(a, b),
    ),
    "preconditioning distorts the posterior": Headline(
        LINEAR,
        "question-preconditioning.*",
        lambda r: r["agent"].startswith("p"),
        "question-preconditioning.*",
        lambda a, b: b["agent"] == a["agent"][1:] and same("schedule", "beta")(a, b),
    ),
    "a preconditioner cuts the regret of HMC": Headline(
        LINEAR,
        "table-main",
        lambda r: r["agent"] == "phmcts",
        "table-main",
        lambda a, b: b["agent"] == "hmcts",
    ),
    "MALATS has lower regret than LMCTS": Headline(
        LINEAR,
        "question-metropolis",
        lambda r: of(r, "malats", warmup_steps=20) and not sound(r),
        "question-metropolis",
        lambda a, b: of(b, "lmcts", steps=25) and not sound(b),
    ),
    "the Metropolis correction explains that gain": Headline(
        LINEAR,
        "question-metropolis",
        lambda r: of(r, "malats", warmup_steps=0),
        "question-metropolis",
        lambda a, b: of(b, "lmcts", steps=25) and sound(a) == sound(b),
    ),
    "variance reduction (SVRG) breaks down": Headline(
        ("linear-40",),
        "table-main",
        lambda r: r["agent"] == "svrglmcts",
        "table-main",
        lambda a, b: b["agent"] == "lmcts" and same("beta")(a, b),
    ),
    "underdamped Langevin loses to overdamped": Headline(
        LINEAR,
        "question-underdamping",
        lambda r: r["agent"] == "ulmcts",
        "question-underdamping",
        lambda a, b: b["agent"] == "lmcts",
    ),
    "larger bonuses hurt when sampling noise dominates": Headline(
        LINEAR,
        r"table-lambda-linear-\d+-b1",
        lambda r: unsmoothed(r) and weight(r) > 0,
        ".*",
        plain,
    ),
}


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def told() -> dict[str, re.Match[str]]:
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    return {m["said"]: m for m in LINE.finditer(page)}


# Once: seed by seed --------------------------------------------------------------------------


@functools.cache
def runs(testbed: str) -> tuple[Row, ...]:
    """Every run of a testbed with its regrets by seed, straight from the file."""
    names = ["agent", "settings", "testbed_settings", "rounds", "studies", "seed", "final_regret"]
    found: dict[str, Row] = {}
    for line in pq.read_table(ROOT / "results" / f"{testbed}.parquet", columns=names).to_pylist():
        key = str(tuple(line[n] for n in names[:4]))
        if key not in found:
            found[key] = {
                **line,
                "key": key,
                "settings": json.loads(line["settings"]),
                "regrets": {},
            }
        if line["final_regret"] is not None:
            found[key]["regrets"][line["seed"]] = line["final_regret"]
    return tuple(found.values())


def asked(row: Row, studies: str) -> bool:
    return any(re.fullmatch(studies, study) for study in row["studies"])


def pairs_of(headline: Headline) -> list[tuple[str, Row, Row]]:
    """Runs and what stands beside them, with 20 or more common seeds; equal runs count once."""
    out: dict[tuple[str, str], tuple[str, Row, Row]] = {}
    for testbed in headline.testbeds:
        for a in runs(testbed):
            if not (asked(a, headline.studies) and headline.chosen(a)):
                continue
            fits = [
                b
                for b in runs(testbed)
                if b is not a
                and asked(b, headline.beside)
                and headline.partner(a, b)
                and (a["rounds"], a["testbed_settings"]) == (b["rounds"], b["testbed_settings"])
            ]
            fits = [b for b in fits if len(set(a["regrets"]) & set(b["regrets"])) >= 20]
            if fits:
                best = max(fits, key=lambda b: len(b["regrets"]))
                regrets = [round(v, 2) for _, v in sorted(a["regrets"].items())]
                out[testbed, str(regrets)] = (testbed, a, best)
    return list(out.values())


def interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """A studentised bootstrap."""
    n = len(values)
    error = values.std(ddof=1) / math.sqrt(n)
    own = values[np.random.default_rng(2024).integers(0, n, (4000, n))]
    t = (own.mean(axis=1) - values.mean()) / (own.std(axis=1, ddof=1) / math.sqrt(n))
    low, high = np.quantile(t, [(1 - level) / 2, (1 + level) / 2])
    return float(values.mean() - high * error), float(values.mean() - low * error)


@pytest.mark.parametrize("name", HEADLINES)
def test_a_headline_by_paired_differences(name: str) -> None:
    (line,) = (m for said, m in told().items() if said.startswith(name))
    found = pairs_of(HEADLINES[name])
    assert len(found) == int(line["pairs"])
    seeds = sorted(set.intersection(*(set(a["regrets"]) & set(b["regrets"]) for _, a, b in found)))
    assert len(seeds) == int(line["seeds"])
    changes: dict[str, list[np.ndarray]] = {}
    for testbed, a, b in found:
        of_a, of_b = (np.array([row["regrets"][s] for s in seeds]) for row in (a, b))
        changes.setdefault(testbed, []).append((of_a - of_b) / of_b.mean())
    values = 100 * np.mean([np.mean(own, axis=0) for own in changes.values()], axis=0)
    assert values.mean() == pytest.approx(number(line["value"]), abs=0.06, rel=0.006)
    low, high = interval(values, 1 - 0.05 / len(told()))
    width = number(line["high"]) - number(line["low"])
    assert low == pytest.approx(number(line["low"]), abs=0.2 * width)
    assert high == pytest.approx(number(line["high"]), abs=0.2 * width)


# Twice: by ratios of means -------------------------------------------------------------------


@functools.cache
def table(testbed: str) -> pd.DataFrame:
    """The file as pandas reads it: a row per run, a column per seed."""
    run = ["agent", "settings", "testbed_settings", "rounds"]
    columns = [*run, "seed", "final_regret"]
    frame = pd.read_parquet(ROOT / "results" / f"{testbed}.parquet", columns=columns)
    frame["run"] = [str(tuple(line)) for line in frame[run].itertuples(index=False)]
    return frame.pivot(index="run", columns="seed", values="final_regret")


@pytest.mark.parametrize("name", HEADLINES)
def test_a_headline_by_ratios_of_means(name: str) -> None:
    """mean(a)/mean(b) − 1 over the same seeds is the mean of (a − b)/mean(b)."""
    (line,) = (m for said, m in told().items() if said.startswith(name))
    ratios: dict[str, list[float]] = {}
    for testbed, a, b in pairs_of(HEADLINES[name]):
        frame = table(testbed)
        means = []
        shared = sorted(set(a["regrets"]) & set(b["regrets"]))[: int(line["seeds"])]
        for row in (a, b):
            means.append(float(frame.loc[row["key"], shared].mean()))
        ratios.setdefault(testbed, []).append(means[0] / means[1] - 1)
    change = 100 * np.mean([np.mean(own) for own in ratios.values()])
    assert change == pytest.approx(number(line["value"]), abs=0.06, rel=0.006)


def test_every_headline_is_here() -> None:
    said = list(told())
    assert len(said) == len(HEADLINES)
    assert all(any(s.startswith(name) for name in HEADLINES) for s in said)


def test_verdicts_follow_from_the_intervals() -> None:
    """By the rule of the page on reading, from what the front page shows."""
    says_less = ("beat", "help", "lessens", "cuts", "has lower", "explains")
    for said, line in told().items():
        low, high = number(line["low"]), number(line["high"])
        less = any(word in said for word in says_less) and "weaker" not in said
        low, high = (low, high) if less else (-high, -low)
        rule = "holds" if high < 0 else "does not hold" if low > -5 else "open"
        assert line["verdict"] == rule, said


def test_what_to_use_has_the_lowest_mean_of_the_ranking() -> None:
    """From the files alone: the agent that is named first, its mean, and that of `lints`."""
    page = (ROOT / "docs" / "results" / "README.md").read_text()
    rows = re.findall(
        r"^\| .+? \| `([\w+-]+)`.* \| ([\d.,\[\]; ]+) \| ([\d.,; ]+) \| ([\d.,; ]+) \|$",
        page,
        re.M,
    )
    beds = (("linear-20", "linear-40"), ("logistic-20",), ("wheel-0.5", "wheel-0.99"))
    assert len(rows) == len(beds)
    for (agent, shown, plain_means, chance), testbeds in zip(rows, beds, strict=True):
        for i, testbed in enumerate(testbeds):
            means = {
                r["agent"]: float(np.mean(list(r["regrets"].values())))
                for r in runs(testbed)
                if "ranking" in r["studies"]
            }
            if i == 0:
                assert agent == min(means, key=lambda name: means[name])
            assert number(shown.split("; ")[i].split(" ")[0]) == pytest.approx(
                means[agent], rel=1e-3
            )
            assert number(plain_means.split("; ")[i]) == pytest.approx(means["lints"], rel=1e-3)
            # The agent that plays by chance was run, too.
            assert number(chance.split("; ")[i]) == pytest.approx(means["uniform"], rel=0.1)
