"""Studies: files that are checked, cells named by what they are, a store that others can read."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest
from commands import Command
from rich.console import Console
from rich.progress import Progress

from feelgood import FeelgoodError
from feelgood.cli import main
from feelgood.cli.progress import _Bars, study_watcher
from feelgood.cli.study import check_outcome
from feelgood.core.parquet import read_parquet
from feelgood.core.policy import AGENTS
from feelgood.core.testbed import TESTBEDS
from feelgood.data import datasets
from feelgood.engine.results import AgentResult
from feelgood.paper.published_rows import rows
from feelgood.paper.reproducing import plan_rows
from feelgood.studies import (
    Cell,
    Store,
    Study,
    StudyOutcome,
    Watcher,
    plan_cells,
    read_study,
    run_study,
)
from feelgood.studies.batches import CellBatch, Claim, is_running, make_batches, plan
from feelgood.studies.merging import merge_seeds
from feelgood.studies.planning import SEED_BLOCK, outline, seed_blocks
from feelgood.testbeds import problems

GOOD = 'testbeds = ["linear-20"]\nagents = ["lints"]\nrounds = 50\n'
DEEP = "a = " + "[" * 5000 + "]" * 5000

#: Content of a study file, and what the sentence about it must say.
MALFORMED = {
    "empty": ("", "key 'testbeds' is missing"),
    "no-agents": ('testbeds = ["linear-20"]', "key 'agents' is missing"),
    "no-toml": ("testbeds = [", "not valid TOML"),
    "table-unknown": ('table = "mian"', "unknown table 'mian': did you mean 'main'"),
    "table-number": ("table = 3", "key 'table' = 3 is not allowed: use the name of a table"),
    "table-empty": ("table = []", "has no cells"),
    "table-preset": ('table = "main"\npreset = "paper-beta1"', "the paper's tables have no preset"),
    "table-testbed": ('table = "main"\ntestbeds = ["digits"]', "has no testbed 'digits'"),
    "table-settings": (
        'table = "main"\n[agents.lmcts]\nbeta = 3',
        "key 'agents.lmcts': a table of the paper has its own settings",
    ),
    "second-line": ('name = "x"\nagents == 3', "line 2"),
    "duplicate-key": ('name = "x"\nname = "y"\n', "line 2"),
    "duplicate-table": (GOOD + "[agents.lints]\n", "agents"),
    "unknown-key": (GOOD + "sedes = 3\n", "unknown key 'sedes': did you mean 'seeds'"),
    "rounds-text": (GOOD.replace("50", '"many"'), "key 'rounds' = 'many'"),
    "rounds-zero": (GOOD.replace("50", "0"), "rounds = 0"),
    "rounds-negative": (GOOD.replace("50", "-5"), "rounds = -5"),
    "rounds-absurd": (GOOD.replace("50", "10000000000000"), "rounds = 10000000000000"),
    "rounds-float": (GOOD.replace("50", "50.5"), "key 'rounds' = 50.5"),
    "rounds-bool": (GOOD.replace("50", "true"), "key 'rounds' = True"),
    "seeds-zero": (GOOD + "seeds = 0\n", "seeds = 0"),
    "seeds-words": (GOOD + 'seeds = "a:b"\n', "seeds = 'a:b'"),
    "seeds-twice": (GOOD + "seeds = [1, 1]\n", "seeds = [1, 1]"),
    "seeds-absurd": (GOOD + "seeds = 100000000\n", "too many"),
    "seeds-table": (GOOD + "[seeds]\na = 1\n", "key 'seeds'"),
    "agents-number": (GOOD.replace('["lints"]', "3"), "key 'agents'"),
    "agents-empty": (GOOD.replace('["lints"]', "[]"), "key 'agents' is empty"),
    "agents-mixed": (GOOD.replace('["lints"]', '["lints", 3]'), "key 'agents'"),
    "agent-twice": (GOOD.replace('["lints"]', '["lints", "lints"]'), "'lints' is named twice"),
    "agent-unknown": (GOOD.replace("lints", "lintz"), "did you mean 'lints'"),
    "testbed-unknown": (GOOD.replace("linear-20", "linaer-20"), "unknown testbed 'linaer-20'"),
    "testbed-indivisible": (GOOD.replace("linear-20", "linear-7"), "linear-7 cannot be split"),
    "setting-unknown": (
        'testbeds = ["linear-20"]\n[agents.lints]\netta = 1\n',
        "lints has no setting 'etta'",
    ),
    "setting-range": ('testbeds = ["linear-20"]\n[agents.lints]\neta = -1\n', "lints.eta = -1"),
    "setting-nan": ('testbeds = ["linear-20"]\n[agents.lints]\neta = nan\n', "lints.eta = nan"),
    "setting-table": (
        'testbeds = ["linear-20"]\n[agents.lints.eta]\nx = 1\n',
        "key 'agents.lints.eta'",
    ),
    "grid-empty": ('testbeds = ["linear-20"]\n[agents.lints]\neta = []\n', "lints.eta = []"),
    "grid-twice": (
        'testbeds = ["linear-20"]\n[agents.lints]\neta = [1, 1.0]\n',
        "twice with the same settings",
    ),
    "grid-absurd": (
        f'testbeds = ["linear-20"]\n[agents.fglmcts]\nlam = {list(range(1000))}\n'
        f"eta = {[i + 1 for i in range(1000)]}\n",
        "1,000,000 settings",
    ),
    "same-cell-twice": (
        'testbeds = ["linear-20"]\n[[agents.lints]]\ntemperature = 1\n[[agents.lints]]\n',
        "twice with the same settings",
    ),
    "preset-unknown": (GOOD + 'preset = "papr"\n', "unknown preset 'papr'"),
    "preset-number": (GOOD + "preset = 3\n", "key 'preset' = 3"),
    "testbed-grid": (
        'agents = ["lints"]\n[testbeds.linear-20]\nnoise = [0.1, 1]\n',
        "testbeds.linear-20 has a list of values",
    ),
    "name-with-path": (GOOD + 'name = "../../x"\n', "name = '../../x'"),
    "store-outside": (GOOD + 'store = "../elsewhere"\n', "store = '../elsewhere'"),
    "store-absolute": (GOOD + 'store = "/etc"\n', "store = '/etc'"),
    "store-empty": (GOOD + 'store = ""\n', "store = ''"),
    "plugin-outside": (GOOD + 'plugins = ["../evil.py"]\n', "plugins = '../evil.py'"),
    "plugin-absent": (GOOD + 'plugins = ["not_there_at_all"]\n', "could not be imported"),
    "number-of-5000-digits": (GOOD.replace("50", "9" * 5000), "a whole number is too large"),
    "number-of-4000-digits": (GOOD.replace("50", "9" * 4000), "key 'rounds': a whole number is"),
    "number-nested": (
        'testbeds = ["linear-20"]\n[agents.lints]\neta = [1, ' + "9" * 4301 + "]\n",
        "a whole number is too large",
    ),
    "number-in-hex": (
        'testbeds = ["linear-20"]\n[agents.lints]\neta = [1, 0x' + "f" * 9000 + "]\n",
        "key 'agents.lints.eta': a whole number is too large",
    ),
    "tune-unknown": (GOOD + "[tune]\nbudgt = 3\n", "unknown key 'tune.budgt': did you mean 'bud"),
    "tune-number": (GOOD + "tune = 3\n", "key 'tune' = 3 is not allowed: use a table with"),
    "tune-budget": (GOOD + "[tune]\nbudget = 0\n", "budget = 0 is not allowed"),
    "tune-text": (GOOD + '[tune]\nbudget = "8"\n', "key 'tune.budget' = '8' is not allowed"),
    "tune-seeds": (GOOD + "[tune]\nseeds = 0\n", "seeds of the search = 0 is not allowed"),
    "tune-rounds": (GOOD + "[tune]\nrounds = 0\n", "rounds = 0 is not allowed"),
    "tune-held-out": (
        GOOD + 'seeds = "999999:1000001"\n[tune]\n',
        "seed 1000000 is held out for tuning: compare on seeds below 1,000,000",
    ),
    "tune-table": ('table = "main"\n[tune]\n', "key 'tune': a table of the paper has its own"),
    "too-deep": (DEEP, "nested too deeply"),
    "too-large": ("#" * 2_000_000, "bytes are too many"),
}


def test_a_table_of_the_paper_is_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells are those of `feelgood reproduce`, so that a store serves both."""
    file = tmp_path / "s.toml"
    file.write_text('table = ["main", "lambda-ablation"]\ntestbeds = ["linear-20"]\nseeds = 30\n')
    cells = read_study(file).study.cells
    tables = [plan_rows(rows(t, ["linear-20"]), seeds=30) for t in ("main", "lambda-ablation")]
    wanted = [cell.id for plan in tables for part in plan.cells for cell in part]
    assert {cell.id for cell in cells} == set(wanted)
    assert len(cells) < len(wanted), "cells that two tables share are there once"
    file.write_text('table = "damping"\nagents = ["lmcts"]\nrounds = 50\n')
    (cell,) = read_study(file).study.cells
    assert (cell.agent, cell.rounds, len(cell.seeds)) == ("lmcts", 50, 10), "seeds as published"
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    file.write_text('table = "neural-simple"\ntestbeds = ["adult"]\n')
    with pytest.raises(FeelgoodError, match=r"s\.toml: the dataset adult is not in"):
        read_study(file)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_gets_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = MALFORMED[name]
    file = tmp_path / "study.toml"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["feelgood", "study", "run", str(file)])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr().err.strip()
    assert stop.value.code == 2
    assert str(file) in said
    assert expected in said
    assert len(said.splitlines()) == 1
    assert said[-1] in ".?" and "Traceback" not in said
    assert not list(tmp_path.glob("*-results"))


def test_bad_encoding_and_absent_files_get_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_bytes(b'name = "x"\nstore = "caf\xe9"\n')
    with pytest.raises(FeelgoodError, match=r"line 2: not UTF-8 text: save it as UTF-8\.$"):
        read_study(file)
    with pytest.raises(FeelgoodError, match="cannot be read"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(FeelgoodError, match="cannot be read"):
        read_study(tmp_path)


def test_a_study_file_says_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'rounds = 70\nseeds = "5:25"\npreset = "paper"\n'
        '[testbeds.linear-20]\nnoise = 0.1\n[testbeds."wheel-0.5"]\n'
        "[agents.lints]\n[agents.fglmcts]\nlam = [0, 0.01]\n"
        '[[agents.lmcts]]\npreset = "paper-beta1"\n'
    )
    given = read_study(file)
    cells = given.study.cells
    assert given.store == tmp_path / "grid-results"
    # Seeds 5 … 24 are cut at 10 and 20: three blocks; (lints + 2 λ + lmcts) × two testbeds.
    assert len(cells) == 3 * 4 * 2
    assert {c.seeds for c in cells} == {
        tuple(range(5, 10)),
        tuple(range(10, 20)),
        tuple(range(20, 25)),
    }
    assert {c.settings["lam"] for c in cells if c.agent == "fglmcts"} == {0.0, 0.01}
    assert {c.settings["beta"] for c in cells if c.agent == "lmcts"} == {1.0}
    assert {c.testbed_settings.get("noise") for c in cells if c.testbed == "linear-20"} == {0.1}


def test_identity_is_the_specification() -> None:
    (cell,) = plan_cells("linear-20", "lints", rounds=50, seeds=3)
    (same,) = plan_cells("linear-20", "lints", settings={"temperature": 1}, rounds=50, seeds=3)
    assert cell.id == same.id
    assert Cell.from_json(json.loads(json.dumps(cell.to_json()))).id == cell.id
    others = [
        plan_cells("linear-20", "lints", settings={"eta": 2}, rounds=50, seeds=3)[0],
        plan_cells("linear-20", "lints", rounds=51, seeds=3)[0],
        plan_cells("linear-20", "lints", rounds=50, seeds=4)[0],
        plan_cells("linear-20", "linucb", rounds=50, seeds=3)[0],
        plan_cells("linear-20", "lints", rounds=50, seeds=3, testbed_settings={"noise": 1})[0],
    ]
    assert len({cell.id, *(c.id for c in others)}) == 1 + len(others)


def test_more_seeds_keep_the_cells_there_were() -> None:
    few = {c.id for c in plan_cells("linear-20", "lints", rounds=50, seeds=20)}
    many = {c.id for c in plan_cells("linear-20", "lints", rounds=50, seeds=30)}
    assert few < many
    assert seed_blocks([12, 3, 11]) == [(3,), (11, 12)]
    assert SEED_BLOCK == 10


def test_cells_of_one_shape_are_one_batch() -> None:
    cells = plan_cells("linear-20", "lmcts", settings={"beta": [1, 2, 3]}, rounds=50, seeds=10)
    cells += plan_cells("linear-20", "lmcts", settings={"steps": 5}, rounds=50, seeds=10)
    batches = make_batches(cells, "cpu", ())
    assert [len(b.cells) for b in batches] == [3, 1]
    many = plan_cells("linear-20", "lints", rounds=50, seeds=200)
    assert [len(b.cells) for b in make_batches(many, "cpu", ())] == [5, 5, 5, 5]
    assert [len(b.cells) for b in make_batches(many, "gpu", ())] == [20]


# ---- running and reading --------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Store]:
    """A small study, run by real workers."""
    cells = plan_cells("linear-20", "lints", rounds=120, seeds=12)
    cells += plan_cells("linear-20", "lmcts", settings={"beta": [1, 100]}, rounds=120, seeds=3)
    study = Study("small", tuple(cells))
    store = Store(tmp_path_factory.mktemp("small") / "store")
    outcome = run_study(study, store, workers=1)
    assert (outcome.done, outcome.missing, outcome.failures) == (4, 0, {})
    return study, store


def test_results_are_those_of_run(finished: tuple[Study, Store]) -> None:
    import feelgood

    study, store = finished
    by_agent: dict[str, list[AgentResult]] = {}
    for r in store.results(study.cells):
        by_agent.setdefault(r.agent, []).append(r)
    (lints,) = by_agent["lints"]
    assert lints.seeds == tuple(range(12))
    direct = feelgood.run("linear-20", ["lints"], rounds=120, seeds=12)["lints"]
    np.testing.assert_allclose(lints.final_regret, direct.final_regret, rtol=1e-3)
    assert lints.curve.shape == direct.curve.shape
    assert [r.settings["beta"] for r in by_agent["lmcts"]] == [1.0, 100.0]
    assert set(by_agent["lmcts"][0].health) == {"step", "gradients"}


def test_provenance_is_inside(finished: tuple[Study, Store]) -> None:
    study, store = finished
    (result, *_) = store.results(study.cells)
    said = result.provenance
    assert said["jax"] and said["python"] and said["feelgood"] and said["device"]
    assert said["duration_s"] > 0
    assert said["started"].startswith("20")
    assert result.run_s > 0


def test_others_open_the_store_without_our_code(finished: tuple[Study, Store]) -> None:
    import duckdb
    import pandas as pd
    import polars as pl

    _, store = finished
    pattern = str(store.cells_folder / "*.parquet")
    query = f"select agent, count(*), avg(final_regret) from '{pattern}' group by agent order by 1"
    counts = duckdb.sql(query).fetchall()
    assert [(agent, n) for agent, n, _ in counts] == [("lints", 12), ("lmcts", 6)]
    assert pl.read_parquet(pattern).height == 18
    frames = [pd.read_parquet(file) for file in store.cells_folder.glob("*.parquet")]
    assert sum(map(len, frames)) == 18


def test_a_cell_is_never_overwritten(finished: tuple[Study, Store]) -> None:
    study, store = finished
    cell = study.cells[0]
    before = store.file(cell.id).read_bytes()
    assert not store.put_bytes(cell.id, b"something else")
    assert store.file(cell.id).read_bytes() == before


@pytest.mark.parametrize("format_", ["parquet", "csv", "arrow"])
def test_export(finished: tuple[Study, Store], format_: str, tmp_path: Path) -> None:
    from feelgood.studies.export import write_table

    study, store = finished
    path = tmp_path / f"out.{format_}"
    write_table(store.table(study.cells), path, format_)
    read = {
        "parquet": lambda: read_parquet(path.read_bytes()),
        "csv": lambda: pa.csv.read_csv(path),
        "arrow": lambda: pa.feather.read_table(path, memory_map=False),
    }[format_]()
    assert read.num_rows == 18
    assert sorted(set(read["agent"].to_pylist())) == ["lints", "lmcts"]


def test_a_torn_line_in_the_manifest_is_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    with store.manifest.open("ab") as file:
        file.write(b'{"cell": "abc", "sha2')
    store.put_bytes("def", b"content")
    assert set(store.checksums()) == {"def"}


def test_a_folder_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(FeelgoodError, match="exists and is not a results store"):
        Store(tmp_path)
    with pytest.raises(FeelgoodError, match="is not a results store"):
        Store(tmp_path, create=False)
    (tmp_path / "manifest.jsonl").write_text("nonsense\n")
    with pytest.raises(FeelgoodError, match="format 1"):
        Store(tmp_path)


def test_plans_that_were_begun_are_taken_up_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    cells = plan_cells("linear-20", "lints", rounds=50, seeds=30)
    first = plan(store, cells, "cpu", ())
    assert [b.id for b in plan(store, cells, "gpu", ())] == [b.id for b in first]
    claim = Claim(store, first[0].id)
    assert claim.take()
    assert is_running(store, first[0].id)
    assert not Claim(store, first[0].id).take()
    claim.release()
    assert not is_running(store, first[0].id)


def test_seeds_merge_in_order_and_once(finished: tuple[Study, Store]) -> None:
    study, store = finished
    parts = [store.read(c.id) for c in study.cells if c.agent == "lints"]
    (merged,) = merge_seeds([*reversed(parts), parts[0]])
    assert merged.seeds == tuple(range(12))
    assert merged.curve.shape[0] == 12


@pytest.mark.slow
def test_show_says_how_far_it_is(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(GOOD)
    assert "1 cells, none run yet" in command("study", "show", file).out
    assert command("study", "run", file).code == 0
    file.write_text(GOOD + "seeds = 20\n")
    assert "1 of 2 cells done" in command("study", "show", file).out
    exported = command("study", "export", file, "--format", "csv", "--out", tmp_path / "o.csv")
    assert exported.code == 0, exported.err
    assert pa.csv.read_csv(tmp_path / "o.csv").num_rows == 10


@pytest.fixture
def own_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a plug-in registers is forgotten after the test."""
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS._families))
    monkeypatch.setattr(AGENTS, "_digests", dict(AGENTS._digests))


@pytest.mark.usefixtures("own_agent")
def test_a_batch_that_cannot_run_is_named_and_the_others_go_on(
    command: Command, tmp_path: Path
) -> None:
    plugin = tmp_path / "bad.py"
    plugin.write_text(
        "import jax.numpy as jnp\n"
        "from feelgood.agents import LinTS\n"
        "from feelgood.core.policy import AGENTS\n"
        "@AGENTS.register('broken')\n"
        "class Broken(LinTS):\n"
        '    """Breaks when it starts."""\n'
        "    def init(self, key, spec, shape=()):\n"
        "        raise RuntimeError('no luck today')\n"
    )
    file = tmp_path / "study.toml"
    file.write_text(
        'plugins = ["bad.py"]\nrounds = 30\nseeds = 2\ntestbeds = ["linear-20"]\n'
        'agents = ["broken", "lints"]\n'
    )
    done = command("study", "run", file)
    assert done.code == 2
    assert "broken on linear-20" in done.err and "no luck today" in done.err
    assert "lints" in done.out


# ---- plug-ins -------------------------------------------------------------------------------

OWN_AGENT = (Path(__file__).parents[2] / "docs" / "adding-an-agent.md").read_text()
OWN_AGENT = OWN_AGENT.split("```python title=boltzmann.py\n")[1].split("```")[0]
OWN_STUDY = """
plugins = ["boltzmann.py"]
rounds = 30
seeds = 2
testbeds = ["wheel-0.5", "linear-20"]
agents = ["boltzmann", "uniform", "epsgreedy-tabular"]
"""


@pytest.mark.slow
@pytest.mark.usefixtures("own_agent")
def test_a_study_with_ones_own_agent_and_what_becomes_of_it_when_that_is_edited(
    command: Command, tmp_path: Path
) -> None:
    """Six batches, more than there are workers; then only the edited agent runs again."""
    plugin, file = tmp_path / "boltzmann.py", tmp_path / "s.toml"
    plugin.write_text(OWN_AGENT)
    file.write_text(OWN_STUDY)
    done = command("study", "run", file, "--workers", "2")
    assert done.code == 0, done.err
    assert "6 of 6 batches, 100 %" in done.err and "failed" not in done.err
    before = read_study(file)
    assert all(bool(cell.code) == (cell.agent == "boltzmann") for cell in before.study.cells)

    plugin.write_text(OWN_AGENT.replace("setting(0.5", "setting(0.5 * 1.0"))
    given = read_study(file)
    started: list[str] = []
    outcome = run_study(
        given.study,
        given.store,
        workers=1,
        watcher=Watcher(started=lambda batch: started.append(batch.cells[0].agent)),
    )
    assert (outcome.done, outcome.failures) == (6, {})
    assert started == ["boltzmann", "boltzmann"]
    said: list[str] = []
    store = Store(given.store, notify=said.append)
    assert len(store.present()) == 8
    assert len(store.results()) == 6 and len(store.results(before.study.cells)) == 6
    (sentence,) = said
    assert sentence.endswith(
        "runs by an earlier version of a plug-in are left out: boltzmann on linear-20, "
        "boltzmann on wheel-0.5."
    )
    both = [store.read(cell.id) for study in (before, given) for cell in study.study.cells]
    assert len(merge_seeds(both)) == 8, "two versions are never one mean"


@pytest.mark.usefixtures("own_agent")
def test_a_plugin_that_changes_after_planning_is_not_run(tmp_path: Path) -> None:
    plugin, file = tmp_path / "boltzmann.py", tmp_path / "s.toml"
    plugin.write_text(OWN_AGENT)
    file.write_text(OWN_STUDY.replace('"linear-20"', "").replace(', "uniform"', ""))
    given = read_study(file)
    plugin.write_text(OWN_AGENT + "\n")
    outcome = run_study(given.study, given.store, workers=1)
    assert outcome.done == 1
    (reason,) = outcome.failures.values()
    assert "agent 'boltzmann' is another one here than when the study was planned" in reason


def test_progress_after_failures() -> None:
    cells = plan_cells("linear-20", "uniform", rounds=50, seeds=30)
    first, second, third = (CellBatch((cell,)) for cell in cells)
    text = io.StringIO()
    with study_watcher(Console(file=text, width=200)) as watch:
        watch.planned([first, second, third], 0, 3)
        for batch in (first, second, third):
            watch.started(batch)
            watch.progress(batch, 100)
        watch.failed(first, "no luck")
        watch.failed(third, "no luck")
        watch.finished(second)
    assert "3 of 3 batches (2 failed), 100 %" in text.getvalue().splitlines()[-1]
    assert "left" not in text.getvalue().splitlines()[-1]
    bars = Progress(console=Console(file=io.StringIO()))
    shown = _Bars(bars, bars.console)
    shown.planned([first, second], 0, 2)
    shown.started(first)
    shown.progress(first, 100)
    shown.failed(first, "no luck")
    (overall,) = bars.tasks
    assert (overall.completed, overall.total) == (0, second.chain_rounds)
    with pytest.raises(FeelgoodError) as caught:
        check_outcome(StudyOutcome(1, 2, {"uniform on linear-20, 10 chains": "no luck."}))
    assert str(caught.value) == (
        "2 of 3 cells could not be run; the first were uniform on linear-20, 10 chains: no luck."
    )


# ---- workers --------------------------------------------------------------------------------


def _before_workers(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Have Python run this in workers before it runs them, as a `sitecustomize` does."""
    lines = text.replace("\n", "\n    ")
    (folder / "sitecustomize.py").write_text(
        f"import os, signal, sys\nif 'feelgood.studies.worker' in sys.orig_argv:\n    {lines}\n"
    )
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{before}")


def test_what_a_worker_prints_of_itself_disturbs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    printing = "print('hello {}')\nos.write(1, b'\\xff no line')"
    _before_workers(tmp_path, monkeypatch, printing)
    study = Study("s", tuple(plan_cells("linear-20", "uniform", rounds=20, seeds=1)))
    assert run_study(study, tmp_path / "s", workers=1).done == 1
    said = capfd.readouterr().err
    assert "hello {}" in said
    assert "Warning" not in said


def test_a_worker_killed_while_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = f"if not os.path.exists({str(tmp_path / 'once')!r}):\n"
    once += f"    open({str(tmp_path / 'once')!r}, 'w').close()\n    os.kill(os.getpid(), 9)"
    _before_workers(tmp_path, monkeypatch, once)
    study = Study("s", tuple(plan_cells("linear-20", "uniform", rounds=20, seeds=1)))
    assert run_study(study, tmp_path / "s", workers=1).done == 1
    other = Study("s", tuple(plan_cells("linear-20", "uniform", rounds=21, seeds=1)))
    _before_workers(tmp_path, monkeypatch, "os.kill(os.getpid(), 9)")
    with pytest.raises(FeelgoodError, match="ended by signal 9 while it started, 3 times"):
        run_study(other, tmp_path / "s", workers=1)
    _before_workers(tmp_path, monkeypatch, "os._exit(7)")
    with pytest.raises(FeelgoodError, match="ended with code 7 while it started"):
        run_study(other, tmp_path / "s", workers=1)


# ---- large studies, and planning without the data -------------------------------------------

LARGE = """
import re, sys, time
from pathlib import Path
from feelgood.studies import Store, read_study
from feelgood.studies.batches import plan

began = time.process_time()
given = read_study(sys.argv[1])
store = Store(given.store)
batches = plan(store, given.study.cells, "cpu", ())
seconds = time.process_time() - began
# Not `ru_maxrss`, which begins with that of the process that started this one.
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
megabytes = int(peak[1]) / 1024
print(len(given.study.cells), len(batches), seconds, megabytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is not shown here")
@pytest.mark.parametrize("many", ["seeds", "settings"])
def test_a_hundred_thousand_cells_are_planned_in_seconds(tmp_path: Path, many: str) -> None:
    file = tmp_path / "large.toml"
    text = 'rounds = 100\ntestbeds = ["linear-20"]\n[agents.fglmcts]\n'
    text += f"eta = {[i + 1 for i in range(10 if many == 'seeds' else 100)]}\n"
    text += "" if many == "seeds" else f"lam = {[i / 200 for i in range(200)]}\n"
    file.write_text(f"seeds = {100_000 if many == 'seeds' else 50}\n" + text)
    command = [sys.executable, "-c", LARGE, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cells, batches, seconds, megabytes = map(float, done.stdout.split())
    assert cells == 100_000 and batches >= 20_000
    assert seconds < 10, "of work: the machine may be busy with other tests"
    assert megabytes < 320, "200 of them to import, 1 kB per cell"
    assert len(list(tmp_path.rglob("*"))) < 10


@pytest.mark.slow
def test_ten_thousand_cells_are_one_file(tmp_path: Path) -> None:
    cells = plan_cells("linear-20", "uniform", rounds=100, seeds=100_000)
    study = Study("large", tuple(cells))
    store = Store(tmp_path / "s")
    began = time.monotonic()
    batches = plan(store, study.cells, "cpu", ())
    assert time.monotonic() - began < 5, "a tenth of a second or two, on a busy machine"
    assert (len(study.cells), len(batches)) == (10_000, 2_000)
    assert [b.id for b in plan(store, study.cells, "cpu", ())] == [b.id for b in batches]
    assert len(list(store.path.rglob("*"))) < 5


STORED = (
    *("adult", "covertype", "magic", "mushroom", "mushroom-risky", "shuttle"),
    *("mnist", "cifar10", "jester", "financial", "restaurant"),
)
LARGE_DATA = ("covertype", "mnist", "cifar10")


@pytest.mark.parametrize("name", STORED)
def test_planning_reads_no_dataset(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "located", Path)
    monkeypatch.setattr(problems, "located", Path)

    def read(*words: object) -> None:
        raise AssertionError("a dataset was read")

    monkeypatch.setattr(datasets, "read_archive", read)
    cells = plan_cells(name, "lints", preset="paper", seeds=1)
    assert make_batches(cells, "cpu", ())


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE_DATA)) for n in STORED]
)
def test_declared_shapes_are_those_of_the_data(name: str) -> None:
    if datasets.find(name.removesuffix("-risky")) is None:
        pytest.skip(f"the dataset {name} is not here")
    for preprocess in ("paper", "standard"):
        resolved, spec, rounds = outline(name, {"preprocess": preprocess})
        testbed = TESTBEDS[name].build(resolved)
        assert (spec, rounds) == (testbed.spec, testbed.rounds)


def test_unknown_engines_and_absent_ray_get_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study("s", tuple(plan_cells("linear-20", "lints", rounds=50, seeds=1)))
    with pytest.raises(FeelgoodError, match="unknown engine 'slurm': use local or ray"):
        run_study(study, tmp_path / "s", engine="slurm")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(FeelgoodError, match=r"pip install 'feelgood\[ray\]'"):
        run_study(study, tmp_path / "s", engine="ray")
    for engine in ("local", "ray"):
        with pytest.raises(FeelgoodError, match="workers = -1 is not allowed: use a whole"):
            run_study(study, tmp_path / "s", engine=engine, workers=-1)


#: The cores of the only worker, of as many workers as there are cores, and of one more.
SHARES = """
import os, sys
from feelgood.studies.worker import use_own_cores
usable, count = os.sched_getaffinity(0), int(sys.argv[1])
for place, workers in ((0, 1), *((n, count) for n in range(count)), (count, count + 1)):
    os.sched_setaffinity(0, usable)
    use_own_cores(place, workers)
    print(*sorted(os.sched_getaffinity(0)))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_workers_share_the_cores() -> None:
    """Each worker keeps to its own; more workers than cores take turns at them."""
    usable = os.sched_getaffinity(0)
    count = len(usable)
    done = subprocess.run(
        [sys.executable, "-c", SHARES, str(count)], capture_output=True, text=True, check=True
    )
    alone, *shares, one_more = [set(map(int, line.split())) for line in done.stdout.splitlines()]
    assert alone == usable
    assert len(shares) == count
    assert set.union(*shares) == usable
    assert all(len(share) == 1 for share in shares)
    assert one_more == shares[0]
