"""The showdown: small files that lose nothing that matters, and sentences that the numbers say."""

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import slow_but
from made_results import result
from typer.testing import CliRunner

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS
from feelgood.engine.results import AgentResult, PosteriorAlong, run_key
from feelgood.paper.published_numbers import all_published
from feelgood.report.chain_costs import chain_cost
from feelgood.studies import Store, plan_cells, read_study
from showdown import (
    asking,
    defaults,
    effects,
    keeping,
    later_settings,
    pages,
    posterior,
    questions,
    searching,
)
from showdown.__main__ import app
from showdown.book import Book
from showdown.collecting import collect
from showdown.effects import Word, effect, number, table
from showdown.filling import Wanted, listed, missing_study
from showdown.keeping import Kept
from showdown.shelf import Shelf, unpreconditioned, unsmoothed, without_bonus
from showdown.slimming import MARGIN, roomy, slim

ROOT = Path(__file__).resolve().parents[1]
NOISE = np.array([0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.1, 0.3, -0.3])


def run(agent: str, values: Any, testbed: str = "linear-20", **settings: Any) -> AgentResult:
    """A result of sound steps with these regrets and settings."""
    made = result(agent, values, testbed=testbed)
    return dataclasses.replace(made, settings={"schedule": "curvature", "beta": 1.0, **settings})


def book_of(*runs: tuple[str, AgentResult]) -> Book:
    return Book(Shelf([Kept(r, (study,)) for study, r in runs]))


@pytest.mark.parametrize(
    ("agent", "settings", "had"),
    [
        ("fglmcts", {"likelihood": "auto", "lam": 0.1}, "score"),
        ("fglmcts", {"likelihood": "squared", "lam": 0.1}, "mean"),
        ("neural-fglmcts", {"likelihood": "bernoulli", "lam": 0.1}, "score"),
    ],
)
def test_kept_runs_have_what_stood_in_for_later_settings(
    agent: str, settings: dict[str, Any], had: str
) -> None:
    """logistic-20 has Bernoulli rewards, and the bonus was on the score."""
    text = json.dumps(settings)
    found = json.loads(later_settings.with_later_settings("logistic-20", agent, text))
    assert set(found) == set(AGENTS[agent].settings)
    assert found | settings == found
    assert (found["bonus_on"], found["lam_schedule"]) == (had, "constant")


def test_networks_are_asked_for_as_they_were_kept() -> None:
    """The preset `beta-1` has their settings from before the noise was learned; digits are here."""
    pytest.importorskip("sklearn")
    kept = {keeping.key_of_row(row) for row in keeping.read_rows(ROOT / "results")}
    text = (ROOT / "studies" / "question-default-data.toml").read_text()
    preset, agents = (tomllib.loads(text)[name] for name in ("preset", "agents"))
    for agent in agents:
        (cell,) = plan_cells(
            "digits", agent, preset=preset, seeds=5, testbed_settings={"preprocess": "standard"}
        )
        assert run_key(cell) in kept, agent


# What is committed ---------------------------------------------------------------------------


def test_the_pages_are_what_the_results_give() -> None:
    """Byte for byte; figures are drawn by the same command and only have to be there."""
    book = Book(Shelf(keeping.read(ROOT / "results")))
    folder = ROOT / "docs" / "results"
    found = ROOT / "results"
    texts = pages.build(book, asking.read(found), searching.read(found))
    assert {file.name for file in folder.glob("*.md")} == set(texts)
    for name, text in texts.items():
        assert (folder / name).read_text() == text, f"{name}: run `make results`"
    drawn = {f"figures/{file.name}" for file in folder.glob("figures/*")}
    assert drawn == set(book.figures), "run `make results`"
    for name, text in texts.items():
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            assert (folder / target).exists(), f"{name} leads to {target}"


def test_a_testbed_with_numbers_is_not_called_absent() -> None:
    """logistic-40 is in no table of all agents, but the tables of its weights are here."""
    text = (ROOT / "docs" / "results" / "logistic.md").read_text()
    assert "| logistic-40 |" in text
    assert "Not run" not in text


def findings() -> str:
    """The part of README that says what came out, on one line."""
    readme = (ROOT / "README.md").read_text()
    return " ".join(readme[readme.index("## What we found") :].split("## ")[1].split())


def test_the_readme_says_what_the_pages_say() -> None:
    """Its findings are written by hand: intervals and counts stand on the front page."""
    said = findings()
    front = (ROOT / "docs" / "results" / "README.md").read_text()
    intervals = re.findall(r"[+−][\d.,]+ \[[+−][\d.,]+, [+−][\d.,]+\]", said)
    assert intervals
    for interval in intervals:
        base = re.search(re.escape(interval) + r" to a regret of ([\d.,]+) \((\d+) seeds\)", said)
        assert base is not None, interval
        row = rf"\| {re.escape(base[1])} \| {re.escape(interval)} \|.*\| {base[2]} \|"
        assert re.search(row, front), base[0]
    compared = re.search(r"Of (\d+) published numbers that we could compare, (\d+) agree", said)
    assert compared is not None
    assert f"published numbers {compared[1]} were compared: {compared[2]} agree" in front


def test_the_readme_counts_the_seeds_that_are_stuck() -> None:
    """From `results/` alone: a seed that never leaves the wrong arm has over half of the regret."""
    told = re.search(r"(\d+) of (\d+) seeds of `neural-lmcts` never leave", findings())
    assert told is not None
    rows = [
        row
        for row in keeping.read_rows(ROOT / "results")
        if (row["testbed"], row["agent"]) == ("adult", "neural-lmcts")
        and json.loads(row["testbed_settings"])["preprocess"] == "paper"
    ]
    stuck = {row["seed"] for row in rows if row["final_regret"] > 0.5 * row["rounds"]}
    assert (len(stuck), len(rows)) == (int(told[1]), int(told[2]))
    assert stuck.isdisjoint(range(5))


def ranked(testbed: str) -> dict[str, tuple[str, bool]]:
    """By agent: its mean regret on the page of the ranking, and whether it may be the best."""
    page = (ROOT / "docs" / "results" / "ranking.md").read_text()
    section = page.split(f"## {testbed}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip("| `"): (row[2].split(" ")[0], row[-1] == "yes |") for row in rows}


def test_the_readme_advises_what_the_pages_advise() -> None:
    """Each agent that it recommends may be the best, and each figure is that of the ranking."""
    readme = (ROOT / "README.md").read_text()
    advice = readme[readme.index("## Which agent") :].split("## ")[1]
    lines = re.findall(r"^- .*", advice, re.MULTILINE)
    for line, testbeds in zip(
        lines, (["linear-20", "linear-40"], ["logistic-20"], ["wheel-0.5"], []), strict=True
    ):
        recommended, _, rest = line.partition(". ")
        for testbed in testbeds:
            table = ranked(testbed)
            assert all(table[agent][1] for agent in re.findall(r"`([\w-]+)`", recommended))
            if len(testbeds) == 1:
                agents = re.findall(r"`([\w-]+)`", line)
                told = re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w.])", rest.rstrip("."))
                assert told == [table[agent][0] for agent in agents], line
    front = (ROOT / "docs" / "results" / "README.md").read_text()
    (answer,) = re.findall(r"What to use by default: data sets\?\*\* (.*)", front)
    for agent in re.findall(r"`([\w-]+)`", lines[-1]):
        assert f"`{agent}`" in answer.split("lowest mean rank")[0], agent


def test_the_results_are_small() -> None:
    sizes = [file.stat().st_size for file in (ROOT / "results").rglob("*") if file.is_file()]
    assert sum(sizes) < 8e6
    figures = [file.stat().st_size for file in (ROOT / "docs" / "results").rglob("*.svg")]
    assert sum(figures) < 4e6


STUDIES = sorted((ROOT / "studies").glob("*.toml"))


@pytest.mark.parametrize("name", slow_but(["ranking", "table-main"], [f.stem for f in STUDIES]))
def test_a_study_says_what_machine_it_needs(name: str) -> None:
    file = ROOT / "studies" / f"{name}.toml"
    text = file.read_text()
    comment = text[: text.index("\n\n")]
    assert all(line.startswith("# ") for line in comment.splitlines())
    assert re.search(r"(CPU|GPU).*(minute|hour|second)", comment), "machine and time"
    needs_data = "FEELGOOD_DATA" in comment
    if not needs_data:
        assert read_study(file).store == ROOT / "studies" / "store"


def test_every_table_of_the_paper_has_its_study() -> None:
    asked = {
        name
        for file in STUDIES
        for name in re.findall(r'"([a-z0-9-]+)"', _line(file.read_text(), "table"))
    }
    assert asked == {p.table for p in all_published()}
    data = {p.testbed for p in all_published() if p.table.startswith("neural")}
    assert {f"data-{name}" for name in data} <= {file.stem for file in STUDIES}


def _line(text: str, key: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(f"{key} =")), "")


# Small files ---------------------------------------------------------------------------------


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"testbed": ["linear-20"]}), tmp_path / "results.parquet")
    with pytest.raises(FeelgoodError, match=r"results\.parquet has no column 'testbed_settings'"):
        keeping.read_rows(tmp_path)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    """Regrets are kept in full, curves are thinned, and the total of gradients stays."""
    rng = np.random.default_rng(0)
    grid = np.unique(np.geomspace(1, 10_000, 190).astype(np.int64))
    curve = np.cumsum(rng.random((3, len(grid))), axis=1)
    curve[1, 100:] = np.nan
    health = {
        "gradients": 20.0 + rng.random((3, len(grid))),
        "acceptance": rng.random((3, len(grid))),
        "step": rng.random((3, len(grid))),
    }
    along = PosteriorAlong(
        rounds=np.array([5_000, 10_000]),
        value={"bias": rng.random((3, 2))},
        expected={"bias": rng.random((3, 2))},
        error={"bias": rng.random((3, 2))},
    )
    whole = dataclasses.replace(
        run("lmcts", [1.0 / 3.0, np.nan, 12345.678901], beta=2.5),
        rounds=10_000,
        seeds=(0, 1, 7),
        curve_rounds=grid,
        curve=curve,
        health=health,
        provenance={"device": "abacus", "batch_chains": 99},
    )
    keeping.write(tmp_path, keeping.to_rows(Kept(whole, ("a", "b"), (3, 5))))
    (kept,) = keeping.read(tmp_path)
    back = kept.result
    assert (kept.studies, kept.numbers) == (("a", "b"), (3, 5))
    every = AGENTS[whole.agent].resolve({**whole.settings, "early": 1})
    assert (back.agent, back.settings, back.seeds) == (whole.agent, every, whole.seeds)
    np.testing.assert_array_equal(back.final_regret, whole.final_regret)
    np.testing.assert_array_equal(back.diverged_at, whole.diverged_at)
    assert len(back.curve_rounds) == keeping.POINTS
    assert (back.curve_rounds[0], back.curve_rounds[-1]) == (1, 10_000)
    places = np.searchsorted(grid, back.curve_rounds)
    np.testing.assert_allclose(back.curve, whole.curve[:, places], rtol=1e-3)
    assert set(back.health) == {"gradients", "acceptance"}
    ours, theirs = chain_cost(back), chain_cost(whole)
    assert ours.gradients == pytest.approx(theirs.gradients, rel=2e-3)
    assert ours.seconds == pytest.approx(theirs.seconds)
    assert back.provenance["device"] == "abacus"
    measured = dataclasses.replace(whole, posterior=along)
    keeping.write(tmp_path, keeping.to_rows(Kept(measured)))
    back = keeping.read(tmp_path)[0].result
    assert back.posterior is not None
    np.testing.assert_allclose(back.posterior.value["bias"], along.value["bias"], rtol=1e-3)
    assert np.isnan(chain_cost(back).seconds), "measuring takes time that is not the agent's"


STUDY = 'table = "main"\ntestbeds = ["linear-20"]\nagents = ["lints", "lmcts"]\nrounds = {rounds}\n'


def put(store: Store, agent: str, value: float, rounds: int) -> None:
    """A finished cell of ten seeds whose regrets are all `value`."""
    (cell,) = plan_cells("linear-20", agent, preset="paper", rounds=rounds, seeds=10)
    made = result(agent, np.full(10, value), rounds=rounds)
    store.put(cell, dataclasses.replace(made, settings=dict(cell.settings)))


def test_stores_become_small_files(tmp_path: Path) -> None:
    """What a study asks for, newer runs first; the same again changes nothing."""
    studies, folder = tmp_path / "studies", tmp_path / "results"
    studies.mkdir()
    (studies / "mine.toml").write_text(STUDY.format(rounds=10_000))
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    put(first, "lints", 10.0, 10_000)
    put(first, "linucb", 10.0, 10_000)
    put(first, "lmcts", 10.0, 400)
    put(second, "lints", 20.0, 10_000)
    done = collect([first.path], studies, folder)
    assert (done.results, done.seeds, done.unasked) == (1, 10, 2)
    (file,) = done.files
    before = file.read_bytes()
    assert collect([first.path], studies, folder).unasked == 2
    assert file.read_bytes() == before
    (kept,) = keeping.read(folder)
    assert kept.studies == ("mine",)
    beside = {(all_published()[n].table, all_published()[n].agent) for n in kept.numbers}
    assert ("main", "lints") in beside
    assert all(agent == "lints" for _, agent in beside)
    collect([second.path], studies, folder)
    assert keeping.read(folder)[0].result.final_regret.tolist() == [20.0] * 10
    (studies / "mine.toml").write_text(STUDY.format(rounds=400))
    assert collect([first.path], studies, folder).results == 1, "lints is not asked for any more"
    (kept,) = keeping.read(folder)
    assert (kept.result.agent, kept.result.rounds) == ("lmcts", 400)
    assert kept.numbers, "shorter than published, and yet beside it"


@pytest.mark.slow  # it runs two studies
def test_what_is_missing_is_run_in_pieces(tmp_path: Path) -> None:
    """Seeds that are here are not run again, unless their posterior is asked for and missing."""
    studies, folder, store = tmp_path / "studies", tmp_path / "results", tmp_path / "store"
    studies.mkdir()
    text = 'testbeds = ["linear-20", "linear-40"]\nagents = ["linucb", "lints"]\nrounds = 8\n'
    (studies / "mine.toml").write_text(text + "seeds = 12\n")
    (studies / "twice.toml").write_text(text + "seeds = 3\n")
    (studies / "measured.toml").write_text(
        'testbeds = ["linear-20"]\nagents = ["lints"]\nrounds = 8\nposterior_every = 4\n'
    )
    (studies / "elsewhere.toml").write_text('testbeds = ["nowhere-3"]\nagents = ["lints"]\n')
    notes: list[str] = []

    def left(*words: str | None) -> list[tuple[str, str, int, int]]:
        study = missing_study(studies, folder, Wanted(*words), notes.append)
        return [] if study is None else list(listed(study.cells))

    everything = ("mine", None, None)
    beds, agents = ("linear-20", "linear-40"), ("linucb", "lints")
    assert left(*everything) == [(bed, agent, 1, 12) for bed in beds for agent in agents]
    assert left(None, "linear-40", "lints") == [("linear-40", "lints", 1, 12)]
    assert left("measured") == [("linear-20", "lints", 1, 10)]
    assert "nowhere-3" in notes[0]

    where = ["--study", "mine", "--studies", str(studies), "--results", str(folder)]

    part = ["fill", str(store), "--testbed", "linear-20", "--workers", "1", *where]
    said = CliRunner().invoke(app, part, catch_exceptions=False).stdout.splitlines()
    assert said == [f"{store}: 4 of 4 cells are there"]
    collect([store], studies, folder)
    assert left(*everything) == [("linear-40", agent, 1, 12) for agent in agents]
    assert left("measured") == [("linear-20", "lints", 1, 10)]
    command = [sys.executable, "-m", "showdown", *part]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == "nothing of this is missing\n"
    assert CliRunner().invoke(app, ["missing", *where]).stdout.splitlines() == [
        "linear-40 linucb: 12 runs",
        "linear-40 lints: 12 runs",
        "24 runs are missing",
    ]


@pytest.mark.slow
def test_measures_come_from_one_run_and_seconds_from_the_other(tmp_path: Path) -> None:
    """A run whose posterior was measured took longer, and is otherwise the same."""
    studies, folder = tmp_path / "studies", tmp_path / "results"
    studies.mkdir()
    text = 'testbeds = ["linear-20"]\nagents = ["lmcts"]\nrounds = 8\n'
    (studies / "plain.toml").write_text(text)
    (studies / "measured.toml").write_text(text + "posterior_every = 4\n")
    ones = {"bias": np.ones((10, 2))}
    along = PosteriorAlong(np.array([4, 8]), ones, ones, ones)
    for name, seconds, measures in (("plain", 2.0, None), ("measured", 50.0, along)):
        (cell,) = read_study(studies / f"{name}.toml").study.cells
        made = result("lmcts", np.arange(10.0), rounds=8)
        made = dataclasses.replace(made, settings=dict(cell.settings), posterior=measures)
        Store(tmp_path / name).put(cell, dataclasses.replace(made, run_s=seconds))
    for order in (("measured", "plain"), ("measured",), ("plain",), ("plain", "measured")):
        collect([tmp_path / name for name in order], studies, folder)
        (kept,) = keeping.read(folder)
        assert kept.studies == ("measured", "plain")
        assert kept.result.posterior is not None
        assert chain_cost(kept.result).seconds == pytest.approx(0.2), order


def test_labels_stay_where_the_data_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data set's study cannot be read without the data: what it asked for is kept."""
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    studies, folder = tmp_path / "studies", tmp_path / "results"
    studies.mkdir()
    (studies / "data-adult.toml").write_text('table = "neural-simple"\ntestbeds = ["adult"]\n')
    number = next(i for i, p in enumerate(all_published()) if p.testbed == "adult")
    agent = all_published()[number].agent
    made = result(agent, [1.0, 2.0], testbed="adult", rounds=10_000)
    keeping.write(folder, keeping.to_rows(Kept(made, ("data-adult", "gone"), (number,))))
    notes: list[str] = []
    assert collect([], studies, folder, notes.append).results == 1
    (kept,) = keeping.read(folder)
    assert (kept.studies, kept.numbers) == (("data-adult",), (number,))
    assert "the dataset adult is not in" in notes[0]


# Sentences -----------------------------------------------------------------------------------


def test_words_follow_the_interval() -> None:
    base = run("lmcts", 100.0 + NOISE)
    assert effect("", run("x", 95.0 - NOISE), base).word is Word.HELPS
    assert effect("", run("x", 105.0 - NOISE), base).word is Word.HURTS
    for mean in (99.95, 100.05):
        assert effect("", run("x", mean - NOISE), base).word is Word.NOTHING
    few = effect("", result("x", [1.0, 2.0, 3.0, 4.0]), base)
    assert (few.word, few.why) == (Word.UNKNOWN, "4 seeds are too few")
    broken = effect("", run("x", np.where(NOISE > 0.25, np.nan, 90.0)), base)
    assert (broken.word, broken.why) == (Word.UNKNOWN, "chains diverged on 2 of 10 seeds")
    assert effect("", None, base).why == "not run"
    apart = dataclasses.replace(base, seeds=tuple(range(50, 60)))
    assert effect("", apart, base).why == "no seed in common"


def test_a_pair_is_in_units_of_its_own_seeds() -> None:
    """The base may have more seeds than the changed agent; its others do not count."""
    base = result("lmcts", [*(100.0 + NOISE), *(500.0 + NOISE)])
    pair = effect("", run("x", 110.0 + NOISE), base)
    assert pair.difference is not None
    assert pair.regrets == pytest.approx((110.0 + NOISE.mean(), 100.0 + NOISE.mean()))
    assert pair.difference.mean == pytest.approx(pair.regrets[0] - pair.regrets[1])
    assert pair.relative == pytest.approx(10.0 / pair.regrets[1])
    assert f"| {number(pair.regrets[1])} |" in table([pair])


def test_the_bonus_is_judged_beside_the_agent_without() -> None:
    study = "question-lambda"
    book = book_of(
        (study, run("fglmcts", 100.0 + NOISE, lam=0.0, b=1000.0)),
        (study, run("fglmcts", 90.0 - NOISE, lam=0.01, b=1000.0)),
        (study, run("fglmcts", 100.0 - NOISE, lam=0.1, b=1000.0)),
        (study, run("fglmcts", 130.0 - NOISE, lam=0.5, b=1000.0)),
        (study, run("fglmcts", [1.0, 2.0], lam=1.0, b=1000.0)),
        (study, run("fglmcts", 50.0 + NOISE, lam=0.5, b=1.0, eta=1.0, testbed="linear-40")),
        ("another", run("fglmcts", 1.0 + NOISE, lam=0.0, b=1000.0, eta=3.0, testbed="linear-40")),
    )
    text = questions.feel_good(book)
    line = next(line for line in text.splitlines() if "`fglmcts` on linear-20" in line)
    assert re.search(r"helps at λ = 0.01 \(−10\.0+ \[−10\.\d, −9\.\d+\]\);", line)
    assert re.search(r"hurts at λ = 0.5 \(\+30\.0 \[\+29\.\d, \+30\.\d\]\);", line)
    assert re.search(r"no difference seen at λ = 0.1 \(\S+ \[−\d.*, \+\d.*\]\);", line)
    assert "cannot say at λ = 1 (2 seeds are too few)" in line
    other = next(line for line in text.splitlines() if "`fglmcts` on linear-40" in line)
    assert "cannot say at λ = 0.5, b = 1 (not run)" in other, "another η is no twin"
    short = pages.in_short(book)[0]
    counts = "helps 1, hurts 1, no difference seen 1, cannot say 2"
    assert f"of 5 pairs on linear-20 and linear-40, {counts}" in short
    assert "`fglmcts` on linear-20, sound steps: hurts at λ = 0.5 (+30.0" in short


def test_a_pair_counts_once() -> None:
    """At b = 1000 the smoothed agent is the plain one; where it plays otherwise it counts."""
    study = "question-lambda"
    plain = 110.0 - NOISE
    book = book_of(
        (study, run("lmcts", 100.0 + NOISE)),
        (study, run("fglmcts", plain, lam=0.5, b=1000.0)),
        (study, run("sfglmcts", plain, lam=0.5, b=1000.0, s=10.0)),
        (study, run("sfglmcts", 120.0 - NOISE, lam=0.5, b=1.0, s=10.0)),
    )
    assert "of 2 pairs on linear-20, hurts 2" in pages.in_short(book)[0]


def test_the_paper_s_grids_have_a_headline() -> None:
    study = "table-lambda-linear-20-b1"
    book = book_of(
        ("x", run("lmcts", 1000.0 + NOISE)),
        (study, run("fglmcts", 900.0 - NOISE, lam=0.5, b=1000.0)),
        (study, run("sfglmcts", 900.0 - 2 * NOISE, lam=0.5, b=1000.0, s=10.0)),
    )
    (said,) = (s for s in pages.in_short(book) if "at the paper's settings" in s)
    assert "hotter: of one pair on linear-20, helps 1 (10 seeds). The same agents" in said
    assert "Linear, what the paper calls β = 10³: cannot say, no pair was run." in said
    text = questions.feel_good(book)
    assert "| `lambda-linear-20-b1` | helps 1 |" in text
    assert re.search(r"\| linear-20 \| `fglmcts` \| λ = 0\.5, b = 1000 \| .* \| helps \|", text)


def test_colder_draws_stand_beside_the_cheap_default() -> None:
    along = {
        ratio: PosteriorAlong(np.array([4]), {"trace": np.full((10, 1), ratio)}, {}, {})
        for ratio in (0.1, 2.0)
    }
    lints = dataclasses.replace(run("lints", 110.0 - NOISE), settings={"eta": 1.0})
    cold = dataclasses.replace(run("lints", 90.0 - NOISE), settings={"eta": 40.0})
    book = book_of(
        ("question-default", run("linucb", 100.0 + NOISE)),
        ("question-default", dataclasses.replace(lints, posterior=along[2.0])),
        ("question-posterior", dataclasses.replace(cold, posterior=along[0.1])),
    )
    text = defaults.default_choice(book)
    assert "this much of the posterior's variance: `lints` 2×." in text
    assert (
        "less than 0.9 times the posterior's variance, beside `linucb` on linear-20: helps" in text
    )
    assert "helps at `lints`, η = 40 (−10" in text


def test_the_cap_is_judged_beside_no_cap() -> None:
    runs = {0.5: 80.0 - NOISE, 1.0: 100.0 - NOISE, 1000.0: 100.0 + NOISE}
    book = book_of(
        ("x", run("lmcts", 90.0 + NOISE)),
        *(("question-cap", run("fglmcts", v, lam=0.1, b=b)) for b, v in runs.items()),
    )
    text = questions.feel_good(book)
    assert re.search(r"The bonus at λ = 0\.1: helps at b = 0\.5 \(.*; hurts at", text)
    assert re.search(r"A cap beside b = 1000: helps at b = 0\.5 .*no difference seen at", text)


def test_smoothing_and_preconditioning_find_their_twins() -> None:
    smooth = book_of(
        ("x", run("fglmcts", 100.0 + NOISE, lam=0.1, b=1.0)),
        ("question-smoothing", run("sfglmcts", 110.0 - NOISE, lam=0.1, b=1.0, s=10.0)),
        ("question-smoothing", run("sfglmcts", 90.0 - NOISE, lam=0.1, b=2.0, s=10.0)),
    )
    text = questions.smoothing(smooth)
    assert "Smoothing with s = 10: hurts at b = 1 (+10.0" in text
    assert "cannot say at b = 2 (not run)" in text
    hot = book_of(
        ("x", run("lmcts", 100.0 + NOISE)),
        ("question-preconditioning", run("plmcts", 90.0 - NOISE, lambda_reg=1.0)),
        ("question-preconditioning", run("phmcts", 90.0 - NOISE)),
        ("x", run("hmcts", 100.0 - NOISE, beta=10.0)),
    )
    text = questions.preconditioning(hot)
    assert "helps at `plmcts`" in text
    assert "cannot say at `phmcts` (not run)" in text, "the other temperature is no twin"


@pytest.mark.parametrize(
    ("change", "pairs"),
    [
        (without_bonus, {"psfghmcts": "phmcts", "neural-fglmcts": "neural-lmcts", "lmcts": None}),
        (unsmoothed, {"usfglmcts": "ufglmcts", "fglmcts": None, "sfg-neural-ts": "fg-neural-ts"}),
        (unpreconditioned, {"pfglmcts": "fglmcts", "lmcts": None, "lints": None}),
    ],
)
def test_names_of_twins(change: Any, pairs: dict[str, str | None]) -> None:
    assert {name: change(name) for name in pairs} == pairs


def test_the_correction_and_the_warm_up_are_told_apart() -> None:
    study = "question-metropolis"
    book = book_of(
        (study, run("lmcts", 100.0 + NOISE, steps=25)),
        (study, run("lmcts", 120.0 - NOISE, steps=5)),
        (study, run("malats", 100.0 - NOISE, steps=25, warmup_steps=0)),
        (study, run("malats", 80.0 - NOISE, steps=25, warmup_steps=20)),
    )
    text = questions.metropolis(book)
    assert re.search(r"MALA with warm-up beside LMC: helps \(−20\.0 \[.*10 seeds\)", text)
    assert re.search(r"the correction .*?: no difference seen", text)
    assert re.search(r"the warm-up .*?: helps", text)
    assert re.search(r"5 steps of LMC beside 25: hurts", text)


def test_how_many_steps_are_enough() -> None:
    study = "question-compute"
    values = {1: 150.0 - NOISE, 5: 100.0 - NOISE, 25: 100.0 + NOISE}
    book = book_of(*((study, run("lmcts", v, steps=k)) for k, v in values.items()))
    text = questions.compute(book)
    assert re.search(r"per round beside 25: hurts at 1 \(\+50\.0 .*; no difference .* 5 \(", text)


def test_regret_and_posterior_error_by_rank() -> None:
    def measured(size: float, regret: float) -> AgentResult:
        value = size + NOISE[:, None] / 100
        value = {"wasserstein2": value, "trace": value}
        along = PosteriorAlong(np.array([4]), value, {}, {})
        return dataclasses.replace(run("lmcts", regret - NOISE, beta=size), posterior=along)

    up = [measured(float(i), 10.0 * i) for i in range(1, 5)]
    down = [measured(float(i), 100.0 - 10.0 * i) for i in range(1, 5)]
    mixed = [measured(float(i), (0.0, 20.0, 10.0, 20.0, 0.0)[i]) for i in range(5)]
    variance, hot, cold = posterior.rank_sentences(up)
    assert "over 4 settings: larger variance of the draws goes with larger regret" in variance
    assert "at least 0.9 times the posterior's variance, over 4 settings: larger error goes" in hot
    assert "at most 1.1 times it: cannot say from 1 settings" in cold
    assert "larger error goes with smaller regret" in posterior.rank_sentences(down)[1]
    assert "no connection is seen" in posterior.rank_sentences(mixed)[0]
    assert "cannot say from 2 settings" in posterior.rank_sentences(up[:2])[0]
    assert [posterior.times(v) for v in (0.114, 2.26, 126.9)] == ["0.11×", "2.3×", "130×"]
    (nearest,) = posterior.nearest_sentences(up)
    assert "beside its nearest, β = 1 [1×]: hurts at β = 2 [2×] (+10.0" in nearest


def test_the_default_is_the_cheapest_of_the_best() -> None:
    def everywhere(agent: str, shift: float, seconds: float) -> list[tuple[str, AgentResult]]:
        runs = [run(agent, 100.0 + shift + NOISE, testbed=t) for t in ("linear-20", "linear-40")]
        return [("question-default", dataclasses.replace(r, run_s=seconds)) for r in runs]

    contest = [*everywhere("a", 0.0, 5.0), *everywhere("b", 0.0, 1.0), *everywhere("c", 9.0, 0.1)]
    short = pages.in_short(book_of(*contest))[-5]
    assert "They can hardly be told apart: 2 of them may be the best" in short
    assert "the cheapest is `b`; a round costs" in short
    study, last = contest[-3]
    elsewhere = dataclasses.replace(last, provenance={"device": "cpu (cpu), abacus (gpu)"})
    mixed = [*contest[:-3], (study, elsewhere), *contest[-2:]]
    assert "the cheapest is" not in pages.in_short(book_of(*mixed))[-5], "on other machines"
    third = pages.in_short(book_of(*mixed, *everywhere("e", 0.0, 3.0)))[-5]
    assert "the cheapest is `e`; a round costs" in third
    assert "(CPU and abacus)" in defaults.default_choice(book_of(*mixed))
    crowd = [*contest, *everywhere("f", 9.0, 1.0), *everywhere("g", 9.0, 1.0)]
    assert "No single winner: `a` and `b` may be the best" in pages.in_short(book_of(*crowd))[-5]
    assert "10 seeds" in short
    alone = pages.in_short(book_of(*contest, *everywhere("d", -9.0, 9.0)))[-5]
    assert "`d` has the lowest mean rank" in alone
    holed = [*contest[:-1], *everywhere("d", 9.0, 9.0)]
    ranked = defaults.default_choice(book_of(*holed))
    assert "(linear-20 and linear-40; 3 agents" in ranked
    assert "because not every run of them has been made: `c`." in ranked
    assert defaults.overall([]) is None
    assert "Cannot say: nothing was run" in pages.in_short(book_of())[-5]


def test_an_agent_that_loses_somewhere_is_not_recommended_for_its_price() -> None:
    shifts = {"linear-20": -9.0, "linear-40": 9.0}
    by_testbed = {
        t: {"a": run("a", 100.0 + NOISE, t), "b": run("b", 100.0 + shift - NOISE, t)}
        for t, shift in shifts.items()
    }
    assert defaults._alike(by_testbed, ["a", "b"]) == ["a"]
    assert defaults._alike({"linear-20": by_testbed["linear-20"]}, ["a", "b"]) == ["a", "b"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Half a sweep, an agent, a testbed; a run that was not measured is none."""
    text = 'testbeds = ["linear-20", "linear-40"]\nagents = ["lints", "lmcts"]\nrounds = 8\n'
    file = tmp_path / "mine.toml"
    file.write_text(text + "seeds = 10\n")
    asked = asking.asked_by("mine", read_study(file).study.cells)
    asking.write(tmp_path, asked)
    assert asking.read(tmp_path) == asked
    assert [a.seeds for a in asked] == [10] * 4
    lints = run("lints", 1.0 + NOISE)
    half = dataclasses.replace(run("lmcts", NOISE[:5]), seeds=tuple(range(5)))
    said = asking.what_is_missing(book_of(("mine", lints), ("mine", half)), asked)
    assert "ask for 40 runs" in said
    assert "| `mine` | 15 of 40 | linear-20: `lmcts`; linear-40 |" in said
    measured = [dataclasses.replace(a, measured=True) for a in asked if a.agent == "lints"]
    assert "| 0 of 20 |" in asking.what_is_missing(book_of(("mine", lints)), measured)
    done = asking.what_is_missing(book_of(("mine", lints)), asked[:1])
    assert "`mine`" not in done


def test_numbers_are_short_and_signed() -> None:
    assert [effects.number(v) for v in (12345.6, 12.34, -1.234, float("nan"))] == [
        "12,346",
        "12.3",
        "−1.23",
        "–",
    ]
    assert effects.signed(3.0) == "+3.00"


def test_a_slim_picture_keeps_what_is_seen() -> None:
    svg = (
        '<svg><path aria-label="x" d="M1.23456,2" opacity="0.5"/>'
        '<path d="M1,1" fill="red" opacity="0"/><path opacity="0" d="M2,2"></path>'
        '<text x="1.999">0.001</text></svg>'
    )
    assert slim(svg) == '<svg><path d="M1.2,2" opacity="0.5"/><text x="2">0.001</text></svg>'


def test_a_picture_has_room_for_wide_letters() -> None:
    drawn = '<svg class="marks" width="497" height="184" viewBox="0 0 497 184"><rect width="497" '
    made = roomy(drawn)
    assert f'width="{497 + 2 * MARGIN}" height="184"' in made
    assert f'viewBox="{-MARGIN} 0 {497 + 2 * MARGIN} 184"' in made


# The command ---------------------------------------------------------------------------------


def test_pages_and_figures_are_written(tmp_path: Path) -> None:
    """From a folder with a sweep in it; a figure that is not asked for any more goes."""
    runs = [run("fglmcts", 100.0 + lam + NOISE, lam=lam, b=1000.0) for lam in (0.0, 0.1, 0.5)]
    rows = [row for r in runs for row in keeping.to_rows(Kept(r, ("question-lambda",)))]
    keeping.write(tmp_path / "results", rows)
    out = tmp_path / "pages"
    (out / "figures").mkdir(parents=True)
    (out / "figures" / "old.svg").write_text("<svg/>")
    pages.write_pages(tmp_path / "results", out)
    drawn = sorted((out / "figures").iterdir())
    assert [figure.name for figure in drawn] == ["bonus.svg", "lambda-linear.svg"]
    assert all(f'viewBox="{-MARGIN} 0' in figure.read_text() for figure in drawn)
    assert "figures/lambda-linear.svg" in (out / "README.md").read_text()


@pytest.mark.slow
def test_the_command_ends_with_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "showdown", "collect", str(tmp_path / "nowhere")]
    bad = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert "is not a results store" in bad.stderr
    assert len(bad.stderr.strip().splitlines()) == 1
