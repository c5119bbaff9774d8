"""Results: short forms, charts, frames, paired tables, and folders that everything reads."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import feelgood
from feelgood import AgentResult, FeelgoodError, RunResult
from feelgood.agents import LinUCB, Uniform
from feelgood.cli import main
from feelgood.cli.output import prepare_output, save_run
from feelgood.testbeds import Linear

ROUNDS = 30
TINY = Linear(parameters=6, arms=3)


@pytest.fixture(scope="module")
def result() -> RunResult:
    """Names, a sweep, a dozen seeds: two cells per result."""
    settings: Any = {"linucb": {"alpha": [0.0, 1.0]}}
    return feelgood.run(
        "linear-6", ["uniform", "linucb"], rounds=ROUNDS, seeds=12,
        settings={"testbed": {"arms": 3}, **settings},
    )  # fmt: skip


@pytest.fixture(scope="module")
def objects() -> RunResult:
    """Objects under names that must not be taken for HTML."""
    agents = {"<b>cold</b>": LinUCB(alpha=0.1), "hot": LinUCB(alpha=2.0)}
    return feelgood.run(TINY, agents, rounds=ROUNDS, seeds=3)


def with_regret(result: AgentResult, values: list[float], **changes: Any) -> AgentResult:
    regret = np.array(values)
    diverged = np.where(np.isfinite(regret), -1, 5)
    return dataclasses.replace(result, final_regret=regret, diverged_at=diverged, **changes)


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["feelgood", *map(str, words)])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


# ---- short forms ----------------------------------------------------------------------------


def test_a_run_is_shown_in_a_few_lines(result: RunResult) -> None:
    lines = repr(result).splitlines()
    assert lines[0] == "linear-6, 30 rounds, 12 seeds: mean regret ± std"
    for line, label, r in zip(lines[1:], result.labels, result, strict=True):
        digits = 1 if r.regret.mean >= 10 else 2
        spread = f"{r.regret.mean:.{digits}f} ± {r.regret.std:.{digits}f}"
        assert line == f"  {label:<10}  {spread}"
    assert repr(RunResult(())) == "no results"
    assert "interrupted" in repr(dataclasses.replace(result, interrupted=True))


def test_one_agent_is_shown_in_one_line(result: RunResult) -> None:
    mean, std = result[0].regret.mean, result[0].regret.std
    expected = f"uniform on linear-6, 30 rounds, 12 seeds: mean regret {mean:.1f} ± {std:.1f}"
    assert repr(result[0]) == expected
    broken = with_regret(result[0], [1.0] * 11 + [np.nan])
    assert repr(broken).endswith("mean regret 1.00 ± 0.00 (1 of 12 chains diverged)")


def test_many_results_are_cut(result: RunResult) -> None:
    many = RunResult(tuple(dataclasses.replace(result[0], agent=f"a{i}") for i in range(60)))
    assert len(repr(many)) < 2_000
    assert repr(many).splitlines()[-1] == "  … and 38 lines more"


def test_html_is_small_and_names_are_escaped(objects: RunResult) -> None:
    for text in (objects._repr_html_(), objects[0]._repr_html_(), objects.compare()._repr_html_()):
        assert text.startswith("<table>") and len(text) < 3_000
        assert "&lt;b&gt;cold" in text and "<b>" not in text
    assert "no results" in RunResult(())._repr_html_()


# ---- names ----------------------------------------------------------------------------------


def test_results_are_found_by_place_agent_and_label(result: RunResult) -> None:
    assert result.labels == ("uniform", "linucb α=0", "linucb α=1")
    assert result["linucb"] is result["linucb alpha=0"] is result[1] is result[np.int64(1)]
    assert result["linucb alpha=1"] is result["linucb α=1"] is result[-1]
    assert result.compare("linucb alpha=1")[0].baseline == "linucb α=1"
    with pytest.raises(KeyError):
        result["lints"]
    with pytest.raises(FeelgoodError, match="no result 'linucv': did you mean 'linucb'"):
        result["linucv"]


def test_objects_have_the_names_they_are_given(objects: RunResult) -> None:
    assert objects.labels == ("<b>cold</b>", "hot")
    assert objects["hot"].settings["alpha"] == 2.0


def test_objects_of_one_class_are_told_apart_by_their_settings() -> None:
    run = feelgood.run(TINY, [LinUCB(alpha=0.1), LinUCB(alpha=2.0)], rounds=ROUNDS, seeds=3)
    assert run.labels == ("LinUCB α=0.1", "LinUCB α=2")
    assert len(run.compare()) == 1
    alone = feelgood.run(TINY, LinUCB(alpha=2.0), rounds=ROUNDS, seeds=3)
    np.testing.assert_array_equal(run[1].arm_counts, alone[0].arm_counts)


def test_objects_that_differ_in_nothing_that_is_known_are_numbered() -> None:
    run = feelgood.run(TINY, [Uniform(), Uniform()], rounds=5, seeds=2)
    assert run.labels == ("Uniform", "Uniform #2")
    assert [r.agent for r in run] == ["Uniform", "Uniform #2"]


# ---- charts and frames ----------------------------------------------------------------------


def test_the_chart_is_the_pages(result: RunResult) -> None:
    from feelgood.report.charts.curves import regret_curves

    spec, page = result.plot().to_dict(), regret_curves(result.results).to_dict()
    assert spec["config"]["range"]["category"]
    (rows,), (expected,) = (list(s["datasets"].values()) for s in (spec, page))
    assert rows == expected
    assert {row["series"] for row in rows} == set(result.labels)
    assert result[0].plot(log_x=True, band="std").to_dict()["datasets"]


def test_frames_have_one_row_per_seed(result: RunResult) -> None:
    frame, other = result.to_pandas(), result.to_polars()
    assert isinstance(frame, pd.DataFrame) and isinstance(other, pl.DataFrame)
    assert len(frame) == len(other) == 36
    expected = np.concatenate([r.final_regret for r in result])
    np.testing.assert_array_equal(frame["final_regret"], expected)
    np.testing.assert_array_equal(other["final_regret"].to_numpy(), expected)
    assert len(result[1].to_pandas()) == 12


# ---- paired tables --------------------------------------------------------------------------


def test_the_paired_table_says_what_the_numbers_say(result: RunResult) -> None:
    base = np.arange(12.0)
    noise = np.tile([0.1, -0.1], 6)
    run = RunResult(
        (
            with_regret(result[0], list(base + 10), agent="a"),
            with_regret(result[0], list(base + 5 + noise), agent="b"),
            with_regret(result[0], list(base + 10 + noise), agent="c"),
            with_regret(result[0], [np.nan, *base[1:]], agent="d"),
        )
    )
    table = run.compare("a")
    assert [(row.agent, row.verdict) for row in table] == [
        ("b", "lower regret"),
        ("c", "no difference seen"),
        ("d", "cannot be told: chains diverged on 1 of 12 seeds"),
    ]
    b = table[0].difference
    assert b.mean == pytest.approx(-5.0) and b.low < -5.0 < b.high < -4.9
    assert table[0].tests == 3 and table[0].baseline == "a"
    # The best whole one is the baseline unless one is named.
    assert {row.baseline for row in run.compare()} == {"b"}
    assert run.compare()[0].verdict == "higher regret"
    assert repr(table).splitlines()[1].startswith("  b  -5.00  (-5.")
    frame = table.to_pandas()
    assert list(frame["agent"]) == ["b", "c", "d"] and frame["seeds"].tolist() == [12, 12, 11]
    for which in (0, run[0], np.int64(0)):
        assert {row.baseline for row in run.compare(which)} == {"a"}
    assert run[1].compare(run[0])[0].verdict == "lower regret"


def test_one_seed_decides_nothing(result: RunResult) -> None:
    run = feelgood.run("linear-6", ["uniform", "epsgreedy-tabular"], rounds=5, seeds=1,
                       settings={"testbed": {"arms": 3}})  # fmt: skip
    (row,) = run.compare("uniform")
    assert row.verdict == "cannot be told from one seed" and "–" in repr(run.compare())


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("linucv alpha=1", "did you mean 'linucb α=1'"),
        ("linucb", "has several settings: use one of uniform, linucb α=0, linucb α=1"),
        (7, "there is no baseline 7 on linear-6"),
        (True, "there is no baseline True"),
        ([1], "there is no baseline"),
    ],
)
def test_baselines_that_are_not_there(result: RunResult, baseline: Any, message: str) -> None:
    with pytest.raises(FeelgoodError, match=message):
        result.compare(baseline)


def test_one_result_alone_is_not_compared(result: RunResult) -> None:
    with pytest.raises(FeelgoodError, match="nothing to compare"):
        RunResult(result.results[:1]).compare()
    with pytest.raises(FeelgoodError, match="no result to compare with"):
        result[0].compare("linucb")


# ---- folders --------------------------------------------------------------------------------


def same(a: Any, b: Any) -> None:
    """Bit for bit, dictionaries of arrays included."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


@pytest.mark.parametrize("which", ["result", "objects"])
def test_what_is_saved_is_read_bit_for_bit(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: RunResult = request.getfixturevalue(which)
    assert run.save(tmp_path / "run") == tmp_path / "run"
    for back in (feelgood.load(tmp_path / "run"), RunResult.load(str(tmp_path / "run"))):
        assert len(back) == len(run)
        for a, b in zip(run, back, strict=True):
            for field in dataclasses.fields(AgentResult):
                if field.name in ("compile_s", "run_s"):  # sums of shares
                    assert getattr(a, field.name) == pytest.approx(getattr(b, field.name))
                elif field.name != "provenance":
                    same(getattr(a, field.name), getattr(b, field.name))
            assert b.provenance["feelgood"] == feelgood.__version__
        assert back.labels == run.labels
        assert repr(back) == repr(run)
    assert not list(tmp_path.glob("run/.*"))


def test_measured_posteriors_and_diverged_chains_are_saved(tmp_path: Path) -> None:
    run = feelgood.run(TINY, "lints", rounds=10, seeds=2, posterior_every=5)
    broken = with_regret(run[0], [1.5, np.nan])
    RunResult((broken,), interrupted=True).save(tmp_path)
    back = feelgood.load(tmp_path)
    assert back.interrupted and back[0].diverged_at.tolist() == [-1, 5]
    assert run[0].posterior is not None and back[0].posterior is not None
    for part in ("rounds", "value", "expected", "error"):
        same(getattr(run[0].posterior, part), getattr(back[0].posterior, part))


@pytest.mark.slow
def test_the_commands_read_what_a_run_saved(
    objects: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = objects.save(tmp_path / "run")
    assert command(monkeypatch, "plot", folder, "--out", tmp_path / "curves.svg") == 0
    assert "cold" in (tmp_path / "curves.svg").read_text()
    assert command(monkeypatch, "report", folder) == 0
    assert "hot" in (folder / "report.html").read_text(encoding="utf-8")
    objects.save(folder, force=True)  # the page stays
    assert (folder / "report.html").exists()


def test_a_study_finds_the_cells_of_a_run(
    result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same agents, settings and seeds are the same cells."""
    result.save(tmp_path / "run")
    study = tmp_path / "study.toml"
    study.write_text(
        'rounds = 30\nseeds = 12\nstore = "run"\n[testbeds.linear-6]\narms = 3\n'
        "[agents.uniform]\n[agents.linucb]\nalpha = [0, 1]\n"
    )
    out = tmp_path / "all.csv"
    assert command(monkeypatch, "study", "export", study, "--format", "csv", "--out", out) == 0
    table = pd.read_csv(out)
    assert len(table) == 36
    by_agent = {agent: set(rows["final_regret"]) for agent, rows in table.groupby("agent")}
    assert by_agent["uniform"] == set(result[0].final_regret)


def test_results_are_replaced_only_by_force(result: RunResult, tmp_path: Path) -> None:
    result.save(tmp_path)
    with pytest.raises(FeelgoodError, match="exists already: choose another place, or force it"):
        RunResult(result.results[:1]).save(tmp_path)
    assert len(feelgood.load(tmp_path)) == 3
    RunResult(result.results[:1]).save(tmp_path, force=True)
    assert len(feelgood.load(tmp_path)) == 1
    assert len(json.loads((tmp_path / "results.json").read_text())["results"]) == 1
    assert len(list((tmp_path / "cells").iterdir())) == 2


def test_a_studys_store_is_never_replaced(result: RunResult, tmp_path: Path) -> None:
    from feelgood.studies import Store

    Store(tmp_path)
    with pytest.raises(FeelgoodError, match="exists already"):
        result.save(tmp_path)
    with pytest.raises(FeelgoodError, match="store of a study"):
        result.save(tmp_path, force=True)
    for force in (False, True):
        with pytest.raises(FeelgoodError, match="store of a study"):
            prepare_output([tmp_path / "results.json", tmp_path / "results.parquet"], force)
    assert (tmp_path / "manifest.jsonl").exists()


def test_a_failed_save_leaves_the_old_results(
    result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result.save(tmp_path)
    monkeypatch.setattr("pyarrow.parquet.write_table", _full_disk)
    with pytest.raises(FeelgoodError, match="cannot write"):
        RunResult(result.results[:1]).save(tmp_path, force=True)
    assert len(feelgood.load(tmp_path)) == 3
    assert not list(tmp_path.glob(".*"))


def test_what_killed_saves_left_is_removed(result: RunResult, tmp_path: Path) -> None:
    """Staging folders, and the files by which the command tries whether it may write."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / f".feelgood-{gone.pid}.tmp" / "cells").mkdir(parents=True)
    (tmp_path / f".results.json.{gone.pid}.tmp").touch()
    mine = tmp_path / f".results.parquet.{os.getpid()}.tmp"
    mine.touch()
    result.save(tmp_path)
    assert list(tmp_path.glob(".*")) == [mine]
    assert len(feelgood.load(tmp_path)) == 3


#: More calls than a save needs to put its parts into their places.
LAST = 12


class Killed(BaseException):
    """Ends a save as a kill would."""


@pytest.mark.parametrize("at", range(LAST + 1))
def test_a_save_that_ends_between_its_parts_leaves_one_run(
    at: int, result: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts are of the old run, or all of the new one; `make torture` kills for real."""
    old, new = RunResult(result.results[:1]), RunResult(result.results[1:])
    old.save(tmp_path)
    left = at

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*paths: Any, **options: Any) -> Any:
            nonlocal left
            left -= Path(paths[-1]).parent == tmp_path
            if left < 0:
                raise Killed
            return call(*paths, **options)

        return wrapped

    with monkeypatch.context() as patch:
        for module, name in ((os, "replace"), (os, "rename"), (os, "rmdir"), (shutil, "rmtree")):
            patch.setattr(module, name, dying(getattr(module, name)))
        with contextlib.suppress(Killed):
            new.save(tmp_path, force=True)
    assert left >= 0 or at < LAST
    loaded = feelgood.load(tmp_path)
    assert repr(loaded) in (repr(old), repr(new))
    told = RunResult(loaded.results).to_json()["results"]
    written = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [r["settings"] for r in written] == [r["settings"] for r in told]
    rows = pd.read_parquet(tmp_path / "results.parquet")
    assert len(rows) == sum(len(r.seeds) for r in loaded)
    old.save(tmp_path, force=True)
    assert repr(feelgood.load(tmp_path)) == repr(old)
    assert not list(tmp_path.glob(".*"))


def _full_disk(*args: Any, **options: Any) -> None:
    raise OSError(28, "No space left on device")


def test_the_command_line_writes_the_same_folder(result: RunResult, tmp_path: Path) -> None:
    targets = [tmp_path / "run" / name for name in ("results.json", "results.parquet")]
    prepare_output(targets, force=False)
    save_run(result, tmp_path / "r.json", tmp_path / "run")
    assert len(feelgood.load(tmp_path / "run")) == 3
    assert json.loads((tmp_path / "r.json").read_text()) == result.to_json()
    with pytest.raises(FeelgoodError, match="exists already: choose another place, or add --force"):
        prepare_output(targets, force=False)
    prepare_output(targets, force=True)


@pytest.mark.parametrize("wrong", [None, 3, "", "a\0b", "nowhere", b"x", ["a"]])
def test_folders_that_are_none(wrong: Any, result: RunResult, tmp_path: Path) -> None:
    with pytest.raises(FeelgoodError):
        feelgood.load(wrong)
    if wrong != "nowhere":
        with pytest.raises(FeelgoodError):
            result.save(wrong)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FeelgoodError, match="not a folder"):
        result.save(tmp_path / "file")
    with pytest.raises(FeelgoodError, match="not a folder"):
        feelgood.load(tmp_path / "file")
