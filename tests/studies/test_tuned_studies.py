"""Studies that tune first: the search is kept, its seeds are its own, its winners are compared."""

import csv
import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from stored import arrays, assert_same_bytes, children_of

import feelgood
from feelgood import AGENTS, TESTBEDS, FeelgoodError
from feelgood.core.parquet import read_parquet
from feelgood.studies import Store, TunedStudy, read_study, run_study
from feelgood.studies.candidates import HELD_OUT
from feelgood.studies.tuned_studies import SEARCH_FOLDER

PLUGIN = Path(__file__).parents[1] / "leaning.py"
KNOWN = """
plugins = ["leaning.py"]
seeds = 3
testbeds = ["coins"]
agents = ["leaning", "linucb", "uniform"]

[tune]
budget = 5
seeds = 2
"""
#: Something to interrupt, in the search and in the comparison.
LONG = """
rounds = 3000
seeds = 4
testbeds = ["linear-20"]
agents = ["lints", "lmcts"]

[tune]
budget = 3
seeds = 3
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PLUGIN, folder)
    file = folder / "study.toml"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A study, run; what its plug-in registers is forgotten after the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (AGENTS, TESTBEDS):
            registry.families()
            patch.setattr(registry, "_families", dict(registry._families))
            patch.setattr(registry, "_digests", dict(registry._digests))
        file = write(tmp_path_factory.mktemp("tuned"), KNOWN)
        given = read_study(file)
        outcome = run_study(given.plan, given.store, workers=1)
        assert (outcome.done, outcome.missing, outcome.failures) == (11 + 3, 0, {})
        yield file


def regret(width: float) -> float:
    """That of `leaning`, exactly."""
    return 2.0 * min(40, math.ceil(10 * abs(math.log(width / 0.05))))


def plan_of(file: Path) -> TunedStudy:
    plan = read_study(file).plan
    assert isinstance(plan, TunedStudy)
    return plan


def test_the_comparison_runs_what_the_search_found(finished: Path) -> None:
    """Of `leaning` the best candidate is known; of the others it is found in the files."""
    store = read_study(finished).store
    tried: dict[str, dict[str, list[float]]] = {}
    for path in (store / SEARCH_FOLDER / "cells").iterdir():
        for row in read_parquet(path.read_bytes()).to_pylist():
            assert row["seed"] >= HELD_OUT
            settings = tried.setdefault(row["agent"], {})
            settings.setdefault(row["settings"], []).append(row["final_regret"])
    assert {agent: len(own) for agent, own in tried.items()} == {
        "leaning": 5,
        "linucb": 5,
        "uniform": 1,
    }
    compared = {r.agent: r for r in feelgood.load(store)}
    assert len(compared) == 3, "the store holds the comparison alone"
    for agent, result in compared.items():
        assert result.seeds == (0, 1, 2)
        means = {text: np.mean(values) for text, values in tried[agent].items()}
        chosen = json.dumps(dict(result.settings), sort_keys=True)
        assert means[chosen] == min(means.values())
    widths = [json.loads(text)["width"] for text in tried["leaning"]]
    np.testing.assert_allclose(compared["leaning"].final_regret, min(map(regret, widths)))


def test_the_table_of_the_search_lies_beside_the_results(finished: Path) -> None:
    with (read_study(finished).store / "study-search.csv").open() as text:
        lines = list(csv.DictReader(text))
    assert [line["candidate"] for line in lines if line["agent"] == "leaning"] == list("01234")
    for line in lines:
        if line["agent"] == "leaning":
            width = json.loads(line["searched"])["width"]
            assert float(line["regret"]) == pytest.approx(regret(width))
    best = [line["agent"] for line in lines if line["best"] == "yes"]
    assert best == ["leaning", "linucb", "uniform"]


def test_nothing_is_run_again(finished: Path) -> None:
    given = read_study(finished)
    before = {p: p.stat().st_mtime_ns for p in given.store.rglob("*") if p.is_file()}
    outcome = run_study(given.plan, given.store, workers=1)
    assert (outcome.done, outcome.missing) == (14, 0)
    after = {p: p.stat().st_mtime_ns for p in given.store.rglob("*") if p.is_file()}
    assert {p: t for p, t in after.items() if "work" not in p.parts} == {
        p: t for p, t in before.items() if "work" not in p.parts
    }


def test_without_its_whole_search_an_agent_is_not_compared(finished: Path, tmp_path: Path) -> None:
    plan = plan_of(finished)
    assert [part.study.name for part in plan.parts(tmp_path)] == ["study-search"]
    copy = tmp_path / "copy"
    shutil.copytree(read_study(finished).store, copy)
    victim = next(c for c in plan.search.cells if c.agent == "linucb")
    (copy / SEARCH_FOLDER / "cells" / f"{victim.id}.parquet").unlink()
    _, comparison = plan.parts(copy)
    assert {c.agent for c in comparison.study.cells} == {"leaning", "uniform"}
    assert {row["agent"] for row in plan.rows(copy)} == {"leaning", "uniform"}


def test_a_larger_budget_keeps_what_was_tried(finished: Path) -> None:
    before = {c.id for c in plan_of(finished).search.cells}
    larger = finished.with_name("larger.toml")
    larger.write_text(KNOWN.replace("budget = 5", "budget = 9"))
    assert before < {c.id for c in plan_of(larger).search.cells}


def test_what_is_given_is_kept_and_every_setting_of_a_grid_is_tuned(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'rounds = 50\nseeds = 2\ntestbeds = ["linear-20"]\nposterior_every = 25\n'
        "[tune]\nbudget = 4\nrounds = 30\nseeds = 12\n"
        "[agents.fglmcts]\nlam = 0.5\nsteps = [1, 5]\n"
    )
    plan = plan_of(file)
    assert len(plan.searches) == 2
    for search, steps in zip(plan.searches, (1, 5), strict=True):
        assert len(search.candidates) == 4
        cells = [cell for own in search.candidates for cell in own]
        assert {(c.settings["lam"], c.settings["steps"]) for c in cells} == {(0.5, steps)}
        assert {c.rounds for c in cells} == {30} and {c.posterior_every for c in cells} == {None}
        assert sum(len(c.seeds) for c in search.candidates[0]) == 12
        (compared,) = search.comparison
        assert (compared.rounds, compared.posterior_every) == (50, 25)
        assert compared.settings == search.candidates[0][0].settings


def test_there_is_no_study_before_the_search(finished: Path) -> None:
    with pytest.raises(FeelgoodError, match="what the study 'study' compares follows from its"):
        _ = read_study(finished).study


def test_show_and_export(finished: Path, command: Command, tmp_path: Path) -> None:
    shown = command("study", "show", finished)
    assert shown.code == 0
    assert "11 of 11 cells done" in shown.out and "3 of 3 cells done" in shown.out
    begun = command("study", "show", finished, "--store", tmp_path / "nothing")
    assert "study-search: 11 cells, none run yet." in begun.out
    assert "The comparison is planned agent by agent as its search ends." in begun.out
    out = tmp_path / "all.csv"
    assert command("study", "export", finished, "--format", "csv", "--out", out).code == 0
    with out.open() as text:
        assert {int(line["seed"]) for line in csv.DictReader(text)} == {0, 1, 2}


def kill_when(file: Path, begun: Callable[[], bool]) -> None:
    """Run the study, and kill it and its worker once this is so."""
    process = subprocess.Popen(
        [*command_line(file), "--checkpoint-every", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 300
    while not begun():
        assert process.poll() is None and time.monotonic() < until, "nothing to interrupt"
        time.sleep(0.01)
    children = children_of(process.pid)
    process.kill()
    for child in children:
        subprocess.run(["kill", "-9", str(child)], check=False, capture_output=True)
    process.wait()


def command_line(file: Path) -> list[str]:
    return [sys.executable, "-m", "feelgood", "study", "run", str(file), "--workers", "1"]


@pytest.mark.slow
def test_kill_9_in_the_search_and_in_the_comparison(tmp_path: Path) -> None:
    """The same bits as without, in both stores."""
    whole, killed = write(tmp_path / "whole", LONG), write(tmp_path / "killed", LONG)
    assert subprocess.run(command_line(whole), check=False, capture_output=True).returncode == 0
    store = read_study(killed).store
    folders = [store / SEARCH_FOLDER, store]
    for folder in folders:
        kill_when(killed, lambda folder=folder: any(folder.glob("cells/*.parquet")))
    search, *_ = (Store(folder, create=False) for folder in folders)
    assert search.present(), "the search was done when the comparison was killed"
    assert subprocess.run(command_line(killed), check=False, capture_output=True).returncode == 0
    assert_same_bytes(arrays(killed), arrays(whole))
    tables = [read_study(file).store / "study-search.csv" for file in (killed, whole)]
    assert tables[0].read_bytes() == tables[1].read_bytes()
