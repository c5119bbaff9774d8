"""The committed pages: what the results give, short, and what README says of them."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from test_readme import sentences

from showdown import pages
from showdown.effects import FEWEST_SEEDS
from showdown.keeping import Kept, to_rows, write
from showdown.question import claims_level

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import false_intervals  # noqa: E402

SHARES = ("studentised", "student", "claims")
FOLDER = ROOT / "docs" / "results"
COLUMNS = ["testbed", "agent", "studies", "final_regret"]
WORDS = 900
WRITTEN = sorted(FOLDER.glob("*.md"))


def test_the_pages_are_what_the_results_give() -> None:
    """Byte for byte; in a process of its own, where shapes are not checked, which takes long."""
    command = [sys.executable, "-m", "showdown", "pages", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_page_is_short(path: Path) -> None:
    """At most 900 words, those of tables among them, and sentences of less than 30."""
    text = path.read_text()
    assert len(re.findall(r"\S*\w\S*", text)) <= WORDS
    assert [s for s in sentences(text) if len(s.split()) >= 30] == []
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (FOLDER / target).exists(), target


def test_no_verdict_rests_on_few_seeds() -> None:
    for file in (ROOT / "results" / "pairs").glob("*.csv"):
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                few = int(row["seeds"]) < FEWEST_SEEDS
                assert not (few and row.get("verdict") != "not enough yet"), (file.name, row)
    assert FEWEST_SEEDS >= 20


def test_the_front_page_is_one_screen() -> None:
    """A few claims, a figure, two small tables: so many lines that are not empty, and words."""
    text = (FOLDER / "README.md").read_text()
    assert len([line for line in text.splitlines() if line]) <= 42
    assert len(re.findall(r"\S*\w\S*", text)) <= 600
    assert len(re.findall(r"\*\*(?:holds|does not hold|open)\*\*", text)) <= 9
    order = ("# Results", "## The paper's claims", "figures/temperature.svg", "## What to use")
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert re.findall(r"\*\*(holds|does not hold|open)\*\*", text)
    assert all(f"({path.name})" in text for path in WRITTEN if path.name != "README.md")


#: Pages whose CSV is no table of pairs.
OWN_TABLES = ("ranking", "worlds-frontier")


def test_question_pages_have_no_tables_of_pairs() -> None:
    """Pairs are in CSV files and on a page that sorts."""
    for path in WRITTEN:
        text = path.read_text()
        assert "## Pairs" not in text, path.name
        table = ROOT / "results" / "pairs" / f"{path.stem}.csv"
        if table.exists() and path.stem not in OWN_TABLES:
            assert f"pairs/{path.stem}.csv" in text and "(pairs.html)" in text, path.name


def test_the_table_of_false_intervals_is_on_record() -> None:
    """Every figure of the page, the bad ones among them, and those at the claims' level."""
    text = (FOLDER / "reading.md").read_text()
    lines = false_intervals.recorded()
    assert {(line["law"], int(line["seeds"])) for line in lines} == {
        (law, seeds) for law in false_intervals.LAWS for seeds in false_intervals.SEEDS
    }
    for law in false_intervals.LAWS:
        own = [line for line in lines if line["law"] == law]
        shares = [[100 * float(line[n]) for n in SHARES] for line in own]
        cells = " | ".join(f"{ours:.0f} ({student:.0f}), {c:.1f}" for ours, student, c in shares)
        assert f"| {law} | {cells} |" in text
    assert {float(line["claims_level"]) for line in lines} == {round(claims_level(), 6)}


def test_what_is_said_of_intervals_is_on_record() -> None:
    """They hold but for rare stuck seeds, which need 100 seeds; four errors of 2,000 samples."""
    level = 1 - claims_level()
    for line in false_intervals.recorded():
        rare, seeds = "twenty" in line["law"], int(line["seeds"])
        bad = float(line["studentised"]) > 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)
        assert bad == (rare and seeds < 100), line
        bad = float(line["claims"]) > level + 4 * np.sqrt(level * (1 - level) / 2000)
        assert bad == ((rare and seeds < 100) or ("six" in line["law"] and seeds < 30)), line


@pytest.mark.parametrize("law", false_intervals.LAWS)
def test_the_record_of_false_intervals_is_what_is_measured(law: str) -> None:
    """With 30 seeds, 200 samples, other random numbers and fewer resamples: five errors of both.

    Five errors of a share, over twelve shares, err once in a hundred thousand times.
    """
    found = false_intervals.rates(law, 30, 200, seed=1_000, draws=1_999)
    (line,) = (
        own for own in false_intervals.recorded() if (own["law"], own["seeds"]) == (law, "30")
    )
    for name in SHARES:
        share = max(float(line[name]), 0.004)
        error = np.sqrt(share * (1 - share) * (1 / 200 + 1 / 2000))
        assert abs(getattr(found, name) - share) < 5 * error + 0.005, name


@pytest.mark.slow
@pytest.mark.parametrize("seeds", (20, 100))
@pytest.mark.parametrize("law", false_intervals.LAWS)
def test_the_whole_record_of_false_intervals_is_measured(law: str, seeds: int) -> None:
    found = false_intervals.rates(law, seeds, 400, seed=2_000, draws=1_999)
    (line,) = (
        own for own in false_intervals.recorded() if (own["law"], own["seeds"]) == (law, str(seeds))
    )
    for name in SHARES:
        share = max(float(line[name]), 0.004)
        error = np.sqrt(share * (1 - share) * (1 / 400 + 1 / 2000))
        assert abs(getattr(found, name) - share) < 5 * error + 0.005, name


@pytest.mark.slow  # the pages of everything
def test_pages_and_files_are_written_and_old_ones_go(tmp_path: Path) -> None:
    from test_showdown_questions import NOISE, run

    runs = [run("fglmcts", 100.0 + lam + NOISE, lam=lam, b=1000.0) for lam in (0.0, 0.1, 0.5)]
    write(
        tmp_path / "results", [r for own in runs for r in to_rows(Kept(own, ("question-lambda",)))]
    )
    out = tmp_path / "pages"
    (out / "figures").mkdir(parents=True)
    (out / "figures" / "old.svg").write_text("<svg/>")
    (out / "old.md").write_text("old")
    pages.write_pages(tmp_path / "results", out)
    assert pages.stale(tmp_path / "results", out) == []
    (out / "reading.md").write_text("another")
    (out / "more.md").write_text("more")
    assert pages.stale(tmp_path / "results", out) == [str(out / "more.md"), str(out / "reading.md")]
    assert [f.name for f in (out / "figures").iterdir()] == ["lambda-linear.svg"]
    assert not (out / "old.md").exists()
    assert "figures/lambda-linear.svg" in (out / "bonus-linear.md").read_text()
    assert "`fglmcts`" in (out / "bonus-linear.md").read_text()
    rows = (tmp_path / "results" / "pairs" / "bonus-linear.csv").read_text().splitlines()
    assert len(rows) == 3


# README --------------------------------------------------------------------------------------


def findings() -> str:
    """The part of README that says what came out, on one line."""
    readme = (ROOT / "README.md").read_text()
    return " ".join(readme[readme.index("## What we found") :].split("## ")[1].split())


def test_the_readme_says_what_the_pages_say() -> None:
    """Its findings are written by hand: intervals stand in the file of pairs."""
    told = re.findall(
        r"([+−][\d.,]+ \[[+−][\d.,]+, [+−][\d.,]+\]) to a regret of ([\d.,]+) \((\d+) seeds\)",
        findings(),
    )
    assert told
    with (ROOT / "results" / "pairs" / "bonus-linear.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["verdict"] == "hurts"]
    names = ("difference", "low", "high", "mean_without", "seeds")
    for interval, base, seeds in told:
        found = [float(n) for n in re.findall(r"[+-][\d.]+", interval.replace("−", "-"))]
        found += [float(base), float(seeds)]
        own = [[float(row[name] or "nan") for name in names] for row in rows]
        assert any(np.allclose(found, numbers, rtol=0.003) for numbers in own)


def test_the_readme_says_what_the_bonus_costs() -> None:
    """Both prices stand on the page of the worlds."""
    told = re.findall(
        r"([+−][\d.,]+ \[[+−][\d.,]+, [+−][\d.,]+\]) (?:on|with networks on) ([\w-]+)", findings()
    )
    assert [testbed for _, testbed in told] == ["linear-20", "adult"]
    page = (FOLDER / "worlds.md").read_text()
    (linear, _), (adult, _) = told
    assert f"β = 1 it adds {linear} to 89.2 on linear-20" in page
    assert f"On adult it adds {adult} to" in page


def test_the_readme_counts_what_agrees() -> None:
    """Word by word what the page of agreement begins with."""
    page = (FOLDER / "agreement.md").read_text()
    told = re.search(r"After Holm's correction .* found by trying\.", page)
    assert told is not None
    assert told[0] in " ".join(findings().split())


def test_other_pages_have_the_numbers_of_the_pairs() -> None:
    """What docs/samplers.md says of the two scales of a bonus stands in the file of pairs."""
    text = " ".join((ROOT / "docs" / "samplers.md").read_text().split())
    told = re.findall(r"(?:mean|score) (?:adds )?([+−][\d.]+) \[([+−][\d.]+), ([+−][\d.]+)\]", text)
    with (ROOT / "results" / "pairs" / "bonus-logistic.csv").open(newline="") as file:
        rows = [
            [float(row[name] or "nan") for name in ("difference", "low", "high")]
            for row in csv.DictReader(file)
        ]
    assert len(told) >= 3
    for numbers in told:
        found = [float(n.replace("−", "-")) for n in numbers]
        assert any(np.allclose(found, own, rtol=0.002) for own in rows), numbers


def test_the_readme_counts_the_seeds_that_are_stuck() -> None:
    """From `results/` alone: a seed that never leaves the wrong arm has over half of the regret."""
    told = re.search(r"(\d+) of (\d+) seeds of `neural-lmcts` never leave", findings())
    assert told is not None
    names = ["agent", "testbed_settings", "seed", "rounds", "final_regret"]
    rows = [
        row
        for row in pq.read_table(ROOT / "results" / "adult.parquet", columns=names).to_pylist()
        if (row["agent"], row["rounds"]) == ("neural-lmcts", 10_000)
        and json.loads(row["testbed_settings"])["preprocess"] == "paper"
    ]
    stuck = {row["seed"] for row in rows if row["final_regret"] > 0.5 * row["rounds"]}
    assert (len(stuck), len(rows)) == (int(told[1]), int(told[2]))
    assert stuck.isdisjoint(range(5))
    page = (FOLDER / "bonus-neural.md").read_text()
    assert f"`neural-lmcts` on adult: {told[1]} of {told[2]} (" in page
    # Once more, by the last rounds: nearer to chance than to the forest of the yardsticks.
    frame = pd.read_parquet(ROOT / "results" / "adult.parquet")
    frame = frame[["data-adult" in studies for studies in frame["studies"]]]
    own = frame[frame["agent"] == "neural-lmcts"]
    assert set(own.loc[own["simple_regret"] >= stuck_from(10_000), "seed"]) == stuck
    assert len(own) == len(rows)


def stuck_from(rounds: int) -> float:
    """Halfway from the forest's regret to that of chance over 500 rounds of adult, by hand."""
    sticks = pd.read_csv(ROOT / "results" / "yardsticks.csv")
    paper = sticks["settings"].str.contains('"preprocess": "paper"')
    (line,) = sticks[(sticks["testbed"] == "adult") & (sticks["rounds"] == rounds) & paper].index
    return float((sticks["uniform"] + sticks["learner"])[line] / 2 / rounds * 500)


def test_the_readme_says_what_frees_networks() -> None:
    """The three shares of stuck seeds are those of the page, and twice those of the results."""
    told = re.search(r"(\d+) % are stuck without it and (\d+) % with it;\s+(\d+) %", findings())
    assert told is not None
    wanted = (
        ("neural-lmcts", {"lr": 0.005, "beta": 775.5, "batch": 256}),
        ("neural-fglmcts", {"lr": 0.005, "beta": 775.5, "batch": 256, "lam": 0.1, "b": 10.0}),
        ("neural-soft-fglmcts", {"lam": 0.1, "softness": 1.0, "beta": 775.5}),
    )
    names = ["agent", "settings", "studies", "rounds", "seed", "simple_regret", "final_regret"]
    names += ["curve_rounds", "curve_regret"]
    rows = pq.read_table(ROOT / "results" / "adult.parquet", columns=names).to_pylist()
    for share, (agent, settings) in zip(told.groups(), wanted, strict=True):
        own = [
            row
            for row in rows
            if row["agent"] == agent
            and "question-stuck" in row["studies"]
            and settings.items() <= json.loads(row["settings"]).items()
        ]
        assert len(own) == 100 and {row["rounds"] for row in own} == {2_000}
        last = [row["simple_regret"] for row in own]
        assert sum(value >= stuck_from(2_000) for value in last) == int(share)
        # Again from the curves: what was lost after about three quarters of the run.
        counted = 0
        for row in own:
            place = int(np.searchsorted(row["curve_rounds"], 1_500))
            lost = row["final_regret"] - row["curve_regret"][place]
            rate = lost / (2_000 - row["curve_rounds"][place])
            counted += rate >= stuck_from(2_000) / 500
        assert counted == pytest.approx(int(share), abs=2)
    page = (FOLDER / "stuck-networks.md").read_text()
    rows = ("the paper's settings, no bonus", "λ = 0.1", "0.1 | 1")
    for share, row in zip(told.groups(), rows, strict=True):
        assert f"| {row} | {share} % [" in page


def test_the_readme_advises_the_networks_of_the_front_page() -> None:
    """On each data set the agent with the lowest mean; no data set is left out."""
    readme = (ROOT / "README.md").read_text()
    advice = readme[readme.index("will not do**") :].split("\n\n")[0]
    named = re.findall(r"`([\w-]+)` on (\w+)", advice)
    page = (FOLDER / "README.md").read_text()
    row = page[page.index("with networks (") :].split(" | ")
    assert re.findall(r"`([\w-]+)` \((\w+)\)", row[1]) == named
    # Many testbeds are counted there, few are named.
    counted = f"({len(named)} testbeds," in row[0]
    assert counted or all(testbed in row[0] for _, testbed in named)
    assert "Tables, with networks (" in page
    # On adult none beats the majority class; on magic all are within a few per cent.
    mean, fixed = re.findall(r"([\d,]+) against ([\d,]+)", advice)[0]
    assert row[2].startswith(f"{mean} [") and "†; " in row[2]
    assert row[4].startswith(f"{fixed};")
    means = pd.concat(
        pd.read_parquet(ROOT / "results" / f"{name}.parquet", columns=COLUMNS)
        for name in ("adult", "magic")
    )
    means = means[[any(s.startswith("data-") for s in own) for own in means["studies"]]]
    means = means.groupby(["testbed", "agent"])["final_regret"].agg(["mean", "count"])
    judged = means[means["count"] >= FEWEST_SEEDS]["mean"]
    networks = judged[judged.index.get_level_values("agent").str.contains("neural")]
    assert networks["adult"].min() == pytest.approx(float(mean.replace(",", "")), abs=1)
    assert networks["adult"].min() > float(fixed.replace(",", ""))
    alike = networks["magic"].drop(["fg-neural-ts", "sfg-neural-ts"])
    assert len(alike) >= 6 and alike.max() < 1.02 * alike.min()


def test_the_readme_advises_what_the_ranking_says() -> None:
    """Each agent that it recommends may be the best, and each figure is that of the ranking."""
    with (ROOT / "results" / "pairs" / "ranking.csv").open(newline="") as file:
        rows = {(row["testbed"], row["agent"]): row for row in csv.DictReader(file)}
    readme = (ROOT / "README.md").read_text()
    advice = readme[readme.index("## Which agent") :].split("## ")[1]
    lines = re.findall(r"^- .*", advice, re.MULTILINE)
    beds = (["linear-20", "linear-40"], ["logistic-20"], ["wheel-0.5"])
    for line, testbeds in zip(lines, beds, strict=False):
        recommended, _, rest = line.partition(". ")
        for testbed in testbeds:
            named = re.findall(r"`([\w-]+)`", recommended)
            assert all(rows[testbed, agent]["may_be_best"] == "yes" for agent in named)
            if len(testbeds) == 1:
                means = [float(rows[testbed, a]["mean"]) for a in re.findall(r"`([\w-]+)`", line)]
                told = re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w.])", rest.rstrip("."))
                found = [float(text.replace(",", "")) for text in told]
                np.testing.assert_allclose(found, means, rtol=0.001)
