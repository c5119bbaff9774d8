"""`feelgood evaluate` and `feelgood report LOG`, as typed, with real agents."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Command

from feelgood.logs.event_log import EventLog


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A uniform log in which the sign of the context says which arm pays."""
    path = tmp_path_factory.mktemp("logs") / "decisions.arrow"
    rng = np.random.default_rng(0)
    with EventLog(path, batch=100) as log:
        for id in range(600):
            x, arm = rng.normal(), rng.integers(0, 2)
            chosen = {"arm": ["down", "up"][arm], "arms": ["down", "up"], "probability": 0.5}
            log.decision(id, context=[x, 1.0], pmf=[0.5, 0.5], version=0, **chosen)
            log.reward(id, float((x > 0) == (arm == 1)) + 0.1 * rng.normal())
    return path


def test_agents_are_judged_and_the_better_one_is_named(
    command: Command, log: Path, tmp_path: Path
) -> None:
    page, file = tmp_path / "page.html", tmp_path / "found.json"
    options = ("--blocks", 4, "--page", page, "--json", file)
    done = command("evaluate", log, "uniform", "linucb", *options)
    assert done.code == 0, done.err
    assert "linucb earns most" in done.out and "replay" in done.out
    found = json.loads(file.read_text())
    uniform, linucb = found["agents"]
    assert found["decisions"] == 450 and found["learned_first"] == 150
    # The truth is 0.5 for a uniform player and 1 for one that knows: see the log above.
    for agent, truth in ((uniform, 0.5), (linucb, 1.0)):
        for name in ("dr", "snips", "ips", "replay"):
            one = agent["estimates"][name]
            assert abs(one["value"] - truth) < 4.9 * one["error"] + 0.02, (agent["agent"], name)
    assert uniform["effective_decisions"] == pytest.approx(450)
    assert "linucb" in page.read_text()
    assert command("evaluate", log, "uniform", "--page", page).code == 2  # it exists


def test_a_log_has_a_page(command: Command, log: Path, tmp_path: Path) -> None:
    done = command("report", log, "--out", tmp_path / "log.html")
    assert done.code == 0, done.err
    assert "600 decisions" in (tmp_path / "log.html").read_text()


@pytest.mark.slow
def test_columns_of_a_table_are_named(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = ["age,drink,paid,chance,note"]
    for _ in range(60):
        drink = ["tea", "rum"][rng.integers(0, 2)]
        lines.append(f"{rng.normal():.3f},{drink},{rng.integers(0, 2)},0.5,{rng.random()}")
    (tmp_path / "log.csv").write_text("\n".join(lines))
    named = ("--arm", "drink", "--reward", "paid", "--probability", "chance", "--features", "age")
    done = command("evaluate", tmp_path / "log.csv", "uniform", "--blocks", 2, *named)
    assert done.code == 0, done.err
    assert "doubly robust" in done.out


@pytest.mark.slow
def test_chains_judge_where_a_rule_has_no_formula(command: Command, log: Path) -> None:
    done = command("evaluate", log, "lmcts", "--members", 8, "--blocks", 4, "--json", "-")
    assert done.code == 0, done.err
    (agent,) = json.loads(done.out)["agents"]
    assert agent["members"] == 8
    assert agent["estimates"]["dr"]["value"] > 0.8


@pytest.mark.slow
def test_the_program_ends_well_while_it_still_compiles(log: Path) -> None:
    words = ["evaluate", str(log), "lmcts", "--members", "4", "--blocks", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "feelgood", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.csv", "lints"], "'nowhere.csv' does not exist"),
        (["{log}", "linst"], "did you mean 'lints'?"),
        (["{log}", "lints", "--blocks", 1], "blocks = 1 is not allowed"),
        (["{log}", "lints", "--format", "obp", "--arm", "a"], "name none"),
        (["{log}", "lints", "--format", "csv"], "unknown format 'csv'"),
        (["{log}", "lints", "--set", "lints.beta=1,2"], "is a list: give one value"),
    ],
)
def test_misuse_is_told_in_a_sentence(
    command: Command, log: Path, words: list[object], sentence: str
) -> None:
    done = command("evaluate", *(str(word).format(log=log) for word in words))
    assert done.code == 2
    assert sentence in done.err and len(done.err.splitlines()) == 1
