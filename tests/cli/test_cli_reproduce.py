"""`feelgood reproduce`: what it runs, prints, writes and refuses."""

import csv
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Command
from made_results import result

from feelgood.cli import output
from feelgood.paper import costs, reproducing
from feelgood.paper.published_rows import TITLES, rows
from feelgood.paper.reproducing import plan_rows
from feelgood.report.published_comparisons import (
    PublishedComparison,
    compare_rows,
    comparison_in_words,
)
from feelgood.studies import Store


@pytest.fixture
def command(reproduce: Command) -> Command:
    """A shorter name here, where there is no other command."""
    return reproduce


def fill(folder: Path, testbed: str, agent: str, mean: float, **options: object) -> None:
    """Put a made result for the main table's rows of this agent into the store."""
    reading = "released" if testbed.startswith("released") else "paper"
    chosen = rows("main", [testbed], [agent], reading)
    plan = plan_rows(chosen, **options)  # type: ignore[arg-type]
    store = Store(folder)
    for cells in plan.cells:
        assert not isinstance(cells, str), cells
        for cell in cells:
            values = mean + np.arange(len(cell.seeds)) - (len(cell.seeds) - 1) / 2
            made = result(cell.agent, values, seeds=cell.seeds, testbed=testbed, rounds=cell.rounds)
            store.put(cell, made)


def test_what_is_in_the_store_is_not_run_again(command: Command, tmp_path: Path) -> None:
    store = tmp_path / "feelgood-results"
    fill(store, "linear-40", "lints", 204.0)
    before = {file.name: file.stat().st_mtime_ns for file in (store / "cells").iterdir()}
    done = command("main", "--testbed", "linear-40", "--agents", "lints")
    assert done.code == 0
    assert "204.0 ± 3.0 (10)" in done.out
    assert "204.6 ± 19.1 (10)" in done.out
    text = " ".join(done.out.split())  # the caption is wrapped
    assert "agrees: 1" in text
    assert "level 0.01" in text
    assert {f.name: f.stat().st_mtime_ns for f in (store / "cells").iterdir()} == before


def test_a_difference_has_its_reason_and_seeds_are_merged(command: Command, tmp_path: Path) -> None:
    fill(tmp_path / "s", "linear-40", "linucb", 500.0, seeds=25)
    done = command(
        "main", "--testbed", "linear-40", "--agents", "linucb", "--seeds", 25, "--store", "s"
    )
    assert "(25)" in done.out
    assert "differs (1)" in done.out
    assert "α = 1" in done.out


def test_fewer_rounds_are_not_compared(command: Command, tmp_path: Path) -> None:
    fill(tmp_path / "s", "linear-40", "lints", 20.0, rounds=30, seeds=2)
    done = command(
        "main", "--testbed=linear-40", "--agents=lints", "--rounds=30", "--seeds=2", "--store=s"
    )
    assert "run with T = 30 rounds, published with T = 10,000" in done.out
    assert "not run yet: 1" in done.out


def test_both_readings_give_one_verdict(command: Command, tmp_path: Path) -> None:
    """The text has 500 where 126.3 ± 19.3 is published, the code 126: that explains it."""
    fill(tmp_path / "s", "linear-40", "linucb", 500.0, seeds=25)
    fill(tmp_path / "s", "released-linear-40", "linucb", 126.0, seeds=25)
    call = ("main", "--testbed", "linear-40", "--agents", "linucb", "--seeds", 25, "--store", "s")
    done = command(*call, "--preset", "both")
    assert "explained (1)" in done.out
    assert "(1) the released code has 126.0 ± " in done.out
    alone = command(*call, "--preset", "released")
    assert "explained" in alone.out


@pytest.mark.parametrize(
    ("format_", "beginning"),
    [("csv", "table,testbed,agent"), ("markdown", "Cumulative"), ("latex", r"\begin{table}")],
)
def test_formats_go_to_stdout_alone_or_to_a_file(
    command: Command, tmp_path: Path, format_: str, beginning: str
) -> None:
    fill(tmp_path / "s", "linear-40", "lints", 204.0)
    call = ("main", "--testbed", "linear-40", "--agents", "lints", "--store", "s")
    shown = command(*call, "--format", format_)
    assert shown.out.startswith(beginning)
    written = command(*call, "--format", format_, "--out", "deep/file.txt")
    assert (written.code, written.out) == (0, "")
    assert (tmp_path / "deep" / "file.txt").read_text() == shown.out
    again = command(*call, "--format", format_, "--out", "deep/file.txt")
    assert again.code == 2
    assert "--force" in again.err
    assert command(*call, "--format", format_, "--out", "deep/file.txt", "--force").code == 0


def test_the_terminal_table_can_be_written_too(command: Command, tmp_path: Path) -> None:
    fill(tmp_path / "s", "linear-40", "lints", 204.0)
    call = ("main", "--testbed", "linear-40", "--agents", "lints", "--store", "s")
    done = command(*call, "--out", "table.txt")
    assert done.out == ""
    assert "204.6 ± 19.1 (10)" in (tmp_path / "table.txt").read_text()


def test_rows_that_cannot_be_run_are_listed(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproducing, "missing", lambda row: f"the agent {row.agent} is absent")
    done = command("neuralts-simple", "--testbed", "adult", "--format", "csv")
    records = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["verdict"] for r in records] == ["cannot be run"] * 3
    assert records[0]["reason"] == "the agent neural-ts is absent"


def test_the_list_shows_every_table_with_a_time(command: Command) -> None:
    done = command("--list")
    assert done.code == 0
    for name in TITLES:
        assert name in done.out
    (main,) = (line for line in done.out.splitlines() if "│ main " in line)
    assert "73" in main
    assert any(unit in main for unit in (" s ", " min ", " h "))


def test_every_synthetic_row_has_an_estimate() -> None:
    for table in TITLES:
        if not table.startswith("neural"):
            seconds = costs.estimated_seconds(rows(table))
            assert seconds is not None, table
            assert 1.0 < seconds < 1e6
    main = rows("main", ["linear-20"])
    once, twice = costs.estimated_seconds(main), costs.estimated_seconds([*main, *main])
    assert once == twice
    assert 0.01 < costs.speed_of_this_machine() < 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mian",), "did you mean 'main'?"),
        ((), "no table was named"),
        (("main", "--seeds", "0"), "seeds = '0' is not allowed"),
        (("main", "--seeds", "ten"), "seeds = 'ten' is not allowed"),
        (("main", "--seeds", "5:2"), "seeds = '5:2' is not allowed"),
        (("main", "--rounds", "0"), "rounds = 0 is not allowed"),
        (("main", "--format", "latx"), "did you mean 'latex'?"),
        (("main", "--testbed", "wheel-0.5"), "has no testbed 'wheel-0.5'"),
        (("main", "--agents", "lmct"), "has no agent 'lmct'"),
        (("main", "--agents", "lints", "--engine", "cloud"), "unknown engine 'cloud'"),
        (("main", "--agents", "lints", "--workers", "0"), "workers = 0 is not allowed"),
        (("main", "--agents", "lints", "--out", "."), "is a folder"),
    ],
)
def test_bad_input_is_one_sentence(
    command: Command, arguments: tuple[str, ...], message: str
) -> None:
    done = command(*arguments)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""


def test_a_folder_that_is_something_else_is_left_alone(command: Command, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    done = command("main", "--agents", "lints", "--store", "photos")
    assert done.code == 2
    assert "not a results store" in done.err
    assert [p.name for p in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


# ---- what the table shows, in words, and the demo -------------------------------------------


def compared(*means: tuple[str, float], testbed: str = "linear-40") -> list[PublishedComparison]:
    """Rows of the main table with made results of these means."""
    out: list[PublishedComparison] = []
    for agent, mean in means:
        row = next(r for r in rows("main", [testbed], [agent]) if r.published.beta != 1)
        values = mean + np.linspace(-5.0, 5.0, 10)
        out += compare_rows([row], [result(agent, values, testbed=testbed, rounds=row.rounds)])
    return out


def test_the_table_in_words() -> None:
    found = compared(("lints", 204.0), ("lmcts", 5_000.0))
    best = min(found, key=lambda c: c.row.published.mean)
    assert comparison_in_words(found) == (
        "1 of 2 rows agree with the paper; lmcts differs. Of these agents lints has the lowest "
        f"regret on linear-40, 204.0 on average; in the paper it is {best.label} with "
        f"{best.row.published.mean:,.1f}."
    )
    assert comparison_in_words(found[:1]) == "1 of 1 rows agree with the paper."
    both = [*found, *compared(("lints", 114.0), ("lmcts", 62.0), testbed="linear-20")]
    assert comparison_in_words(both).endswith("lowest regret is the paper's on 1 of 2 testbeds.")
    nothing = compare_rows([found[0].row], ["it has not been run"])
    assert (
        comparison_in_words(nothing) == "No row can be compared with the paper: the table says why."
    )


def test_a_page_comes_with_the_command_to_open_it(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "s", "linear-40", "lints", 204.0)
    monkeypatch.setattr(output.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "platform", "linux")
    call = ("main", "--testbed", "linear-40", "--agents", "lints", "--store", "s")
    done = command(*call, "--page", "my page.html")
    assert done.out.endswith(
        "1 of 1 rows agree with the paper.\npage: my page.html\nopen it: xdg-open 'my page.html'\n"
    )
    assert (tmp_path / "my page.html").exists()
    monkeypatch.setattr(output.shutil, "which", lambda _: None)
    assert "python3 -m webbrowser -t file:///" in output.command_to_open(tmp_path / "page.html")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert output.command_to_open(Path("page.html")) == "open page.html"


def test_the_demo_is_quick_and_every_row_of_it_can_be_compared() -> None:
    """Its agents with the paper's seeds and rounds, in 2 minutes on 2 cores like the reference."""
    text = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    (recipe,) = re.findall(r"^demo:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    (agents,) = re.findall(r"^DEMO_AGENTS := (\S+)$", text, re.MULTILINE)
    assert "reproduce main --testbed linear-20 --agents $(DEMO_AGENTS)" in recipe
    assert "--page results-demo/page.html" in recipe
    assert "--rounds" not in recipe and "--seeds" not in recipe
    chosen = rows("main", ["linear-20"], agents.split(","))
    assert len(chosen) <= 15, "a short table"
    seconds = costs.estimated_seconds(chosen)
    assert seconds is not None and seconds / 2 < 120


def test_a_batch_that_fails_is_named_in_words(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "feelgood.cli.reproduce._run", lambda *_, **__: {"lints on linear-40": "it broke."}
    )
    done = command("main", "--testbed", "linear-40", "--agents", "lints", "--rounds", "1e1")
    assert done.code == 2
    assert done.err == ("feelgood: 1 batch could not be run: lints on linear-40: it broke.\n")


@pytest.mark.slow
def test_it_runs_what_is_missing_and_then_nothing(command: Command, tmp_path: Path) -> None:
    call = ("main", "--testbed", "linear-20", "--agents", "lints,lmcts", "--rounds=40", "--seeds=2")
    first = command(*call, "--format", "csv")
    assert first.code == 0
    records = list(csv.DictReader(io.StringIO(first.out)))
    assert [r["agent"] for r in records] == ["lints", "lmcts", "lmcts"]
    assert all(float(r["ours_mean"]) > 0 and r["ours_seeds"] == "2" for r in records)
    assert records[1]["ours_mean"] != records[2]["ours_mean"], "the two temperatures"
    assert len(list((tmp_path / "feelgood-results" / "cells").iterdir())) == 3
    assert command(*call, "--format", "csv").out == first.out
