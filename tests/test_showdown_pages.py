"""The committed pages: what the results give, short, and what README says of them."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_readme import sentences

from feelgood.stats.student import t_two_sided
from feelgood.stats.studentised import studentised
from showdown import pages
from showdown.effects import FEWEST_SEEDS
from showdown.keeping import Kept, to_rows, write
from showdown.questions.reading import FALSE_VERDICTS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "results"
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
    text = (FOLDER / "README.md").read_text()
    order = ("# Results", "## The paper's claims", "figures/temperature.svg", "## What to use")
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert re.findall(r"\*\*(holds|does not hold|open)\*\*", text)
    assert all(f"({path.name})" in text for path in WRITTEN if path.name != "README.md")


def test_the_table_of_false_verdicts() -> None:
    """With 30 seeds, of 200 samples each: within five errors of what is said, which never drifts.

    Five errors of a share, over six shares, err once in a million times.
    """
    rng = np.random.default_rng(11)
    size = (200, 30)
    laws = {
        "Gaussian": rng.normal(size=size),
        "exponential": rng.exponential(size=size) - 1.0,
        "one seed in six stuck": 0.3 * rng.normal(size=size)
        + 8.0 * (rng.random(size) < 0.17)
        - 1.36,
    }
    for name, samples in laws.items():
        ours = np.mean([studentised(own, draws=999).p <= 0.05 for own in samples])
        t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / np.sqrt(30))
        student = np.mean([t_two_sided(own, 29) <= 0.05 for own in t])
        for seen, said in zip((ours, student), FALSE_VERDICTS[name][1], strict=True):
            share = said / 100
            assert abs(seen - share) < 5 * np.sqrt(share * (1 - share) / 200) + 0.005, name


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
    """Its findings are written by hand: intervals stand on the page of the bonus."""
    told = re.findall(
        r"([+−][\d.,]+ \[[+−][\d.,]+, [+−][\d.,]+\]) to a regret of ([\d.,]+) \((\d+) seeds\)",
        findings(),
    )
    assert told
    page = (FOLDER / "bonus-linear.md").read_text()
    for interval, base, seeds in told:
        assert re.search(rf"\| {re.escape(base)} \(.*\| {re.escape(interval)} \|.* hurts", page)
        assert f"({seeds} seeds)" in page


def test_the_readme_says_what_the_bonus_costs() -> None:
    """Both prices stand on the page of the worlds."""
    told = re.findall(
        r"([+−][\d.,]+ \[[+−][\d.,]+, [+−][\d.,]+\]) (?:on|with networks on) ([\w-]+)", findings()
    )
    assert [testbed for _, testbed in told] == ["linear-20", "adult"]
    page = (FOLDER / "worlds.md").read_text()
    (linear, _), (adult, _) = told
    assert f"β = 1 it adds {linear} to 89.2 on linear-20" in page
    assert f"On adult it adds {adult} to a regret of" in page


def test_the_readme_counts_what_agrees() -> None:
    """Word by word what the page of agreement begins with."""
    page = (FOLDER / "agreement.md").read_text()
    told = re.search(r"After Holm's correction .* a choice fitted to the tables\.", page)
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


def test_the_readme_says_what_frees_networks() -> None:
    """The three shares of stuck seeds are those of the page."""
    told = re.search(r"(\d+) % are stuck without it and (\d+) % with it;\s+(\d+) %", findings())
    assert told is not None
    page = (FOLDER / "stuck-networks.md").read_text()
    rows = ("the paper's settings, no bonus", "λ = 0.1", "λ = 0.1, softness 1")
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
    assert all(testbed in row[0] for _, testbed in named)


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
