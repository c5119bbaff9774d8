"""The command line: what it prints, writes and refuses."""

import dataclasses
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from commands import Command, Done
from grids import slow_but
from made_results import result
from rich.console import Console

import feelgood
from feelgood import AGENTS, TESTBEDS, FeelgoodError
from feelgood.cli import output
from feelgood.cli.choosing import choose
from feelgood.cli.commands import app
from feelgood.cli.set_options import parse_set_options, parse_value
from feelgood.core.errors import shown
from feelgood.core.parquet import read_parquet

PLUGIN = Path(__file__).parents[1] / "plugin.py"
#: Three arms of two dimensions, a few rounds: quick to compile.
SMALL = ("run", "linear-6", "--set", "testbed.arms=3", "--rounds", "20", "--seeds", "2")


#: The command line; a test run that was started in the background ignores Ctrl-C, and so would a
#: plain `python -m feelgood`.
LISTENING_TO_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from feelgood.cli import main
main()
"""


def process(*arguments: object, **env: str) -> subprocess.Popen[str]:
    """`feelgood ARGUMENTS` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", LISTENING_TO_CTRL_C, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    )


def refused(done: Done, message: str) -> None:
    """One sentence on stderr, code 2, and nothing else anywhere."""
    assert done.code == 2
    assert done.out == ""
    assert done.err == f"feelgood: {message}\n"


# ---- list, doctor, help ---------------------------------------------------------------------


def test_list_shows_every_name_with_a_line(command: Command) -> None:
    done = command("list")
    assert done.code == 0
    lines = {line.split()[0]: line for line in done.out.splitlines()}
    assert set(lines) == {"agents:", "testbeds", *AGENTS.names(), *TESTBEDS.names()}
    assert lines["lints"].endswith(AGENTS["lints"].doc)


@pytest.mark.parametrize(("what", "names"), [("agents", AGENTS), ("testbeds", TESTBEDS)])
def test_list_one_kind(command: Command, what: str, names: feelgood.core.registry.Registry) -> None:
    """Names are indented, and agents stand below the headings of their families."""
    lines = command("list", what).out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted(names.names())
    headings = [line for line in lines if not line.startswith("  ")]
    assert len(headings) == len(set(headings)) == (6 if what == "agents" else 0)
    if headings:
        below = lines[lines.index("agents: Upper confidence bounds") + 1 :]
        assert below[0].split()[0] == "linucb"


@pytest.mark.slow
def test_a_name_with_plus_signs_is_a_word_of_command_lines_and_study_files(
    command: Command, tmp_path: Path
) -> None:
    done = command(
        *("run", "linear-5", "ensemble++", "--rounds", "10", "--seeds", "1"),
        *("--set", "ensemble++.members=2,3"),
    )
    assert done.code == 0 and "members=3" in done.out
    study = tmp_path / "plus.toml"
    study.write_text(
        'testbeds = ["linear-5"]\nrounds = 10\nseeds = 1\n[agents."ensemble++"]\nmembers = [2, 3]\n'
    )
    store = ("--store", str(tmp_path / "store"))
    assert command("study", "run", str(study), *store).code == 0
    assert "ensemble++" in command("study", "show", str(study), *store).out


def test_list_settings_shows_default_range_and_meaning(command: Command) -> None:
    out = command("list", "agents", "--settings").out
    allowed = "a finite number at least 0 and at most 1e+09; tuned from 0.01 to 10"
    assert f"alpha = 1.0  ({allowed})  width α" in out
    assert "decay = none  (one of none, sqrt)" in out


def test_list_describes_a_name(command: Command) -> None:
    """What it is, its formula, every setting and a command that works."""
    done = command("list", "psfglmcts")
    assert done.code == 0
    assert done.out.startswith("psfglmcts: Thompson sampling by preconditioned Langevin")
    assert "θ ← θ − h V⁻¹∇L" in done.out and "softplus" in done.out
    for key in AGENTS["psfglmcts"].settings:
        assert f"  {key} = " in done.out
    assert done.out.splitlines()[-1].startswith("  feelgood run linear-20 psfglmcts --set ")


@pytest.mark.parametrize("registry", [AGENTS, TESTBEDS], ids=["agents", "testbeds"])
def test_every_name_can_be_described(
    command: Command, registry: feelgood.core.registry.Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without its data, and its example is a command line that is understood."""
    monkeypatch.delenv("FEELGOOD_DATA", raising=False)
    for name in registry.names():
        example = command("list", name).out.splitlines()[-1].split()
        assert example[:2] == ["feelgood", "run"]
        words = example[2 : example.index("--set")] if "--set" in example else example[2:]
        testbeds, agents = choose(words)
        assert name in (*testbeds, *agents)


def test_list_takes_patterns(command: Command) -> None:
    lines = command("list", "linear-*").out.splitlines()
    names = ["linear-20", "linear-40", "linear-trap-80", "linear-trap-160"]
    assert [line.split()[0] for line in lines] == ["testbeds", *names]
    refused(command("list", "x*"), "nothing matches 'x*': 'feelgood list --all' shows every name.")


def test_list_of_something_else_is_refused(command: Command) -> None:
    refused(command("list", "lmct"), "cannot list 'lmct': did you mean 'lmcts'?")


def test_the_version_is_shown(command: Command) -> None:
    assert command("--version") == (0, f"feelgood {feelgood.__version__}\n", "")


def commands_of(group: Any, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands_of(one, (*prefix, name))
        else:
            yield (*prefix, name), one


def test_every_command_shows_an_example_that_is_understood(command: Command) -> None:
    for words, one in commands_of(typer.main.get_command(app)):
        example = one.epilog.removeprefix("Example: ").split()
        assert example[: len(words) + 1] == ["feelgood", *words]
        one.make_context("feelgood", example[len(words) + 1 :])  # an error if it does not parse
        shown = " ".join(command(*words, "--help").out.split())
        assert f"Example: {' '.join(example)}" in shown


def test_doctor_tells_versions_devices_cache_and_data(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adult.npz").touch()
    monkeypatch.setenv("FEELGOOD_DATA", str(tmp_path))
    done = command("doctor")
    assert done.code == 0
    rows = {line[:16].strip(): line[16:] for line in done.out.splitlines()}
    assert rows["feelgood"] == feelgood.__version__
    for name in ("python", "jax", "numpy", "devices", "cores"):
        assert rows[name]
    assert rows["cache"] == os.environ["FEELGOOD_CACHE"]
    assert rows["data folder"] == str(tmp_path)
    assert rows["datasets here"] == "adult"
    assert "covertype" in rows["datasets absent"]


def test_doctor_without_data(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEELGOOD_DATA", raising=False)
    assert "not set (FEELGOOD_DATA)" in command("doctor").out


def test_help_without_arguments_as_a_process() -> None:
    out, err = process("--help").communicate()
    assert "run" in out and "list" in out and "doctor" in out
    assert err == ""


# ---- run ------------------------------------------------------------------------------------


def test_run_prints_a_table(command: Command) -> None:
    done = command(*SMALL, "uniform", "linucb")
    assert done.code == 0
    assert "linear-6, 20 rounds, 2 seeds (mean ± std)" in done.out
    rows = [line for line in done.out.splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["uniform", "linucb"]
    (uniform,) = feelgood.run(
        "linear-6", ["uniform"], rounds=20, seeds=2, settings={"testbed": {"arms": 3}}
    )
    assert f"{uniform.regret.mean:,.1f} ± {uniform.regret.std:,.1f}" in rows[0]
    assert "setting" not in done.out


def test_a_sweep_shows_what_differs(command: Command) -> None:
    done = command(*SMALL, "linucb", "uniform", "--set", "linucb.alpha=0,0.5")
    assert done.code == 0
    assert "alpha=0 " in done.out and "alpha=0.5 " in done.out
    assert "rho" not in done.out


def test_one_seed_shows_no_spread(command: Command) -> None:
    done = command(*SMALL[:-1], "5:6", "uniform")
    assert "linear-6, 20 rounds, 1 seed" in done.out
    assert "±" not in done.out and "nan" not in done.out


def test_json_file_has_the_results(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "new" / "r.json"
    done = command(*SMALL, "uniform", "linucb", "--json", target)
    assert done.code == 0
    assert f"wrote {target}" in done.out
    results = json.loads(target.read_text())["results"]
    assert [r["agent"] for r in results] == ["uniform", "linucb"]
    assert {
        *("agent", "testbed", "settings", "rounds", "seeds", "final_regret", "simple_regret"),
        *("curve", "status", "compile_s", "run_s"),
    } <= set(results[0])
    assert set(results[0]["curve"]) == {"rounds", "mean", "std"}
    assert results[1]["settings"] == {"alpha": 1.0, "rho": 0.01}
    assert results[0]["seeds"] == [0, 1]
    assert [p.name for p in target.parent.iterdir()] == ["r.json"], "no temporary file is left"


def test_json_to_stdout_is_json_and_nothing_else(command: Command) -> None:
    done = command(*SMALL, "uniform", "--json", "-")
    assert done.code == 0
    (entry,) = json.loads(done.out)["results"]
    assert entry["agent"] == "uniform"
    assert "linear-6, 20 rounds" in done.err, "the table goes to the other side"


def test_out_holds_json_and_parquet(command: Command, tmp_path: Path) -> None:
    done = command(*SMALL, "uniform", "--out", tmp_path / "results")
    assert done.code == 0
    assert sorted(p.name for p in (tmp_path / "results").iterdir()) == [
        "cells",
        "manifest.jsonl",
        "results.json",
        "results.parquet",
    ]
    table = read_parquet((tmp_path / "results" / "results.parquet").read_bytes())
    tree = json.loads((tmp_path / "results" / "results.json").read_text())
    assert table["final_regret"].to_pylist() == tree["results"][0]["final_regret"]


def test_health_is_shown_on_request(command: Command) -> None:
    done = command(*SMALL[:5], "3", *SMALL[6:], "uniform", "malats", "--health")
    assert done.code == 0
    assert "sampler health" in done.out
    assert "acceptance" in done.out
    assert "exact or no sampler" in done.out


# ---- which testbeds and agents --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "testbeds", "agents"),
    [
        ("linear-20 lints", ["linear-20"], ["lints"]),
        ("lints linear-20 linucb", ["linear-20"], ["lints", "linucb"]),
        ("linear-?0 l*cts", ["linear-20", "linear-40"], ["lmcts"]),
        ("lints linear-6 wheel-0.3 l*cts", ["linear-6", "wheel-0.3"], ["lints", "lmcts"]),
        ("lints deep/mine.CSV", [Path("deep/mine.CSV")], ["lints"]),
    ],
)
def test_names_may_come_in_any_order_and_as_patterns(
    words: str, testbeds: list[str | Path], agents: list[str]
) -> None:
    assert choose(words.split()) == (testbeds, agents)


def test_several_testbeds_run_one_after_the_other(command: Command) -> None:
    done = command(
        *("run", "uniform", "linear-6", "linear-9", "--set", "testbed.arms=3"),
        *("--set", "linear-9.noise=0.1", "--rounds", "20", "--seeds", "3,5", "--json", "-"),
    )
    results = json.loads(done.out)["results"]
    assert [(r["testbed"], r["seeds"]) for r in results] == [
        ("linear-6", [3, 5]),
        ("linear-9", [3, 5]),
    ]
    assert [r["testbed_settings"]["noise"] for r in results] == [0.5, 0.1]
    assert "linear-6, 20 rounds" in done.err and "linear-9, 20 rounds" in done.err


def test_rounds_as_people_write_them(command: Command) -> None:
    for rounds in ("0.02k", "2e1", "20"):
        assert "linear-6, 20 rounds" in command(*SMALL[:5], rounds, *SMALL[6:], "uniform").out


def test_a_table_of_ones_own_is_a_testbed(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file's name, the columns and where guesses are printed."""
    seen: dict[str, Any] = {}

    def from_frame(frame: Path, **options: Any) -> feelgood.Testbed:
        options.pop("notify")("I guess that 'x' is a number.")
        seen.update(options, frame=frame)
        return TESTBEDS["linear-6"].build({"arms": 3})

    monkeypatch.setattr("feelgood.api.frames.from_frame", from_frame)
    file = tmp_path / "mine.csv"
    done = command("run", file, "uniform", "--label", "y", "--rounds", "20", "--seeds", "2")
    assert done.code == 0, done.err
    assert seen == {"frame": file, "label": "y", "rewards": None, "name": "mine"}
    assert "I guess that 'x' is a number." in done.err and "guess" not in done.out
    command("run", file, "uniform", "--rewards", "a, b,c", "--rounds", "20", "--seeds", "2")
    assert seen["rewards"] == ["a", "b", "c"]


def test_a_csv_runs(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("x,y\n" + "".join(f"{i * 7 % 13},{'ab'[i % 2]}\n" for i in range(60)))
    done = command("run", file, "lints", "uniform", "--label", "y", "--rounds", "40", "--seeds=2")
    assert done.code == 0, done.err
    assert "mine, 40 rounds, 2 seeds" in done.out


# ---- which agent is best --------------------------------------------------------------------


def differing(*agents: tuple[str, float, float]) -> list[feelgood.AgentResult]:
    """Results of ten seeds: (agent, mean, half the spread of its differences)."""
    luck = np.linspace(-50.0, 50.0, 10)
    sign = np.array([-1.0, 1.0] * 5)
    return [result(name, mean + luck + spread * sign) for name, mean, spread in agents]


def test_the_best_agent_is_named_with_its_lead() -> None:
    results = differing(("b", 110.0, 2.0), ("a", 100.0, 0.0), ("c", 300.0, 0.0))
    assert output.best_of(results) == (
        "a is best: the regret of b, the next, is higher by 10.0 (97.5 % interval 8.2 to 11.8, "
        "10 paired seeds)."
    )


def test_agents_that_cannot_be_told_apart_are_said_to_be_so() -> None:
    sentence = output.best_of(differing(("b", 101.0, 20.0), ("a", 100.0, 0.0)))
    assert sentence is not None
    assert sentence.startswith(
        "a has the lowest mean regret, but cannot be told apart from b: the regret of b is higher "
        "by 1.0 (95 % interval −14.1 to 16.1, 10 paired seeds)."
    )


def test_the_best_of_one_of_a_single_seed_and_of_diverged_ones() -> None:
    (one,) = differing(("a", 100.0, 0.0))
    assert output.best_of([one]) is None
    single = [result(name, np.array([1.0])) for name in "ab"]
    assert "One seed" in str(output.best_of(single))
    broken = result("b", np.full(10, np.nan))
    assert "only agent of which no chain diverged" in str(output.best_of([broken, one]))
    assert "all of them diverged" in str(
        output.best_of([broken, dataclasses.replace(broken, agent="c")])
    )


# ---- narrow terminals -----------------------------------------------------------------------


def test_a_table_fits_a_narrow_terminal() -> None:
    results = [
        dataclasses.replace(r, settings={"alpha": alpha, "rho": 0.01 * alpha})
        for alpha in (0.001, 0.25)
        for r in differing(("linucb", 12_345.6, 0.0))
    ]
    for width in (60, 80, 120):
        paper = io.StringIO()
        Console(file=paper, width=width).print(output.result_table(results))
        lines = paper.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        rows = [line for line in lines if line.startswith("│")]
        assert len(rows) == 2, "no row takes two lines"
        assert "linucb" in rows[0] and "12,345.6 ± " in rows[0] and "alpha=0.001" in rows[0]
        assert ("too narrow for: compile s" in paper.getvalue()) == (width < 120)


# ---- what is refused ------------------------------------------------------------------------

FINITE = "use a finite number at least 0 and at most 1e+09."
WHOLE = "use 1 to 100,000,000 rounds."
SEEDS = "give a positive number N, a range A:B with 0 ≤ A < B, or a list of seeds."
FORM = "is not understood: write agent.key=value, such as linucb.alpha=0.5."

REFUSED = {
    "agent": (["linear-20", "lint"], "unknown agent 'lint': did you mean 'lints'?"),
    "testbed": (["liner-20", "lints"], "unknown testbed 'liner-20': did you mean 'linear-20'?"),
    "arms": (
        ["linear-7", "lints"],
        "linear-7 cannot be split over 5 arms: use a multiple of 5, such as linear-5.",
    ),
    "setting": (
        ["linear-20", "linucb", "--set", "linucb.alhpa=1"],
        "linucb has no setting 'alhpa': did you mean 'alpha'?",
    ),
    "range": (
        ["linear-20", "linucb", "--set", "linucb.alpha=-0.5"],
        f"linucb.alpha = -0.5 is not allowed: {FINITE}",
    ),
    "range in a sweep": (
        ["linear-20", "linucb", "--set", "linucb.alpha=1,nan"],
        f"linucb.alpha = 'nan' is not allowed: {FINITE}",
    ),
    "huge": (
        ["linear-20", "linucb", "--set", "linucb.alpha=1" + "0" * 400],
        f"linucb.alpha = {shown(10**400)} is not allowed: {FINITE}",
    ),
    "text": (
        ["linear-20", "linucb", "--set", "linucb.alpha=wide"],
        f"linucb.alpha = 'wide' is not allowed: {FINITE}",
    ),
    "object": (
        ["linear-20", "linucb", "--set", 'linucb.alpha={"a":1}'],
        f"linucb.alpha = {{'a': 1}} is not allowed: {FINITE}",
    ),
    "choice": (
        ["linear-20", "epsgreedy", "--set", "epsgreedy.decay=fast"],
        "epsgreedy.decay = 'fast' is not allowed: use one of none, sqrt.",
    ),
    "testbed setting": (
        ["wheel-0.5", "lints", "--set", "testbed.noise=-1"],
        "wheel-0.5.noise = -1 is not allowed: use a finite number at least 0 and at most 1e+06.",
    ),
    "absent": (
        ["linear-20", "linucb", "--set", "lints.eta=1"],
        "settings are given for 'lints', which is not in this run: use one of linucb, testbed.",
    ),
    "no value": (
        ["linear-20", "linucb", "--set", "linucb.alpha"],
        f"--set linucb.alpha {FORM}",
    ),
    "empty value": (
        ["linear-20", "linucb", "--set", "linucb.alpha="],
        f"--set linucb.alpha= {FORM}",
    ),
    "no agent": (["linear-20", "linucb", "--set", "alpha=1"], f"--set alpha=1 {FORM}"),
    "no key": (["linear-20", "linucb", "--set", "linucb.=1"], f"--set linucb.=1 {FORM}"),
    "twice": (
        ["linear-20", "linucb", "--set", "linucb.alpha=1", "--set", "linucb.alpha=2"],
        "--set linucb.alpha is given twice: give one value, or a list.",
    ),
    "rounds 0": (["linear-20", "lints", "--rounds", "0"], f"rounds = 0 is not allowed: {WHOLE}"),
    "rounds -5": (["linear-20", "lints", "--rounds", "-5"], f"rounds = -5 is not allowed: {WHOLE}"),
    "rounds absurd": (
        ["linear-20", "lints", "--rounds", "99999999999999999999"],
        f"rounds = 99999999999999999999 is not allowed: {WHOLE}",
    ),
    "seeds 0": (["linear-20", "lints", "--seeds", "0"], f"seeds = '0' is not allowed: {SEEDS}"),
    "seeds -1": (["linear-20", "lints", "--seeds", "-1"], f"seeds = '-1' is not allowed: {SEEDS}"),
    "seeds 5:2": (
        ["linear-20", "lints", "--seeds", "5:2"],
        f"seeds = '5:2' is not allowed: {SEEDS}",
    ),
    "seeds text": (["linear-20", "lints", "--seeds", "x"], f"seeds = 'x' is not allowed: {SEEDS}"),
    "seeds absurd": (
        ["linear-20", "lints", "--seeds", "999999999999999999999"],
        "seeds = range(0, 999999999999999999999) are too many: use at most 100,000.",
    ),
    "seeds 10,000": (
        ["linear-20", "lints", "--seeds", "10,000"],
        f"seeds = '10,000' is not allowed: {SEEDS}",
    ),
    "rounds text": (
        ["linear-20", "lints", "--rounds", "many"],
        f"rounds = 'many' is not allowed: {WHOLE}",
    ),
    "testbed setting twice": (
        ["linear-20", "lints", "--set", "testbed.noise=1", "--set", "linear-20.noise=2"],
        "testbed.noise and linear-20.noise are both given: leave one out.",
    ),
    "no agent at all": (["linear-20"], "no agent was named: name at least one, such as lints."),
    "no testbed": (["lints"], "no testbed was named: name at least one, such as linear-20."),
    "another testbed": (
        ["linear-20", "liner-40", "lints"],
        "unknown testbed 'liner-40': did you mean 'linear-40'?",
    ),
    "pattern of both": (
        ["lin*", "lints"],
        "'lin*' matches testbeds (linear-20, linear-40) and agents (lints, linucb, "
        "lints-inflated): write a narrower pattern.",
    ),
    "pattern of nothing": (
        ["q*", "lints"],
        "no testbed or agent matches 'q*': 'feelgood list' shows all of them.",
    ),
    "label without file": (
        ["linear-20", "lints", "--label", "y"],
        "--label and --rewards are for a file of your own: name one, such as mine.csv.",
    ),
    "plugin file": (
        ["linear-20", "lints", "--plugin", "nowhere.py"],
        "plugin file 'nowhere.py' does not exist: check the path.",
    ),
    "plugin module": (
        ["linear-20", "lints", "--plugin", "no_such_module"],
        "plugin 'no_such_module' could not be imported (ModuleNotFoundError: "
        "No module named 'no_such_module'): mend it or leave it out.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_sentence(command: Command, case: str) -> None:
    arguments, message = REFUSED[case]
    refused(command("run", *arguments), message)


@pytest.mark.parametrize(
    "arguments",
    [[], ["linear-20", "lints", "--nope"]],
)
def test_bad_usage_has_code_2_and_no_traceback(command: Command, arguments: list[str]) -> None:
    done = command("run", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err and "Usage" in done.err


def test_bad_input_as_a_process() -> None:
    running = process("run", "linear-7", "lints")
    out, err = running.communicate()
    assert (running.returncode, out) == (2, "")
    assert err.startswith("feelgood: linear-7 cannot be split") and err.count("\n") == 1


def test_an_existing_file_is_kept_unless_forced(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    target.write_text("precious")
    message = f"{target} exists already: choose another place, or add --force."
    refused(command(*SMALL, "uniform", "--json", target), message)
    assert target.read_text() == "precious"
    assert command(*SMALL, "uniform", "--json", target, "--force").code == 0
    assert json.loads(target.read_text())["results"][0]["agent"] == "uniform"


def test_existing_results_in_the_folder_are_kept_unless_forced(
    command: Command, tmp_path: Path
) -> None:
    target = tmp_path / "results.parquet"
    target.write_text("precious")
    message = f"{target} exists already: choose another place, or add --force."
    refused(command(*SMALL, "uniform", "--out", tmp_path), message)
    assert not (tmp_path / "results.json").exists()
    assert command(*SMALL, "uniform", "--out", tmp_path, "--force").code == 0
    assert read_parquet(target.read_bytes()).num_rows == 2


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for root, who may write anywhere: nothing can be put under a file."""
    (tmp_path / "file").touch()

    def no_run(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr("feelgood.api.running.simulate", no_run)
    file = tmp_path / "file"
    refused(
        command(*SMALL, "uniform", "--out", file),
        f"{file} is not a folder: choose another place.",
    )
    for option, folder in (("--out", file / "deeper"), ("--json", file / "r.json")):
        done = command(*SMALL, "uniform", option, folder)
        assert done.code == 2
        assert done.err.startswith("feelgood: cannot write to ")
        assert done.err.endswith("choose another folder.\n")
        assert done.err.count("\n") == 1


def test_a_folder_in_place_of_a_file_is_refused_even_if_forced(
    command: Command, tmp_path: Path
) -> None:
    for force in ([], ["--force"]):
        done = command(*SMALL, "uniform", "--json", tmp_path, *force)
        refused(done, f"{tmp_path} is a folder: name a file.")


def test_absurd_numbers_of_draws_are_refused_before_anything_runs(command: Command) -> None:
    refused(
        command("posterior", "lints", "--draws", 10**12),
        f"draws = {10**12} is not allowed: use a whole number at least 30 and at most 1,000,000.",
    )
    refused(
        command("calibrate", "lints", "--simulations", 10**12),
        f"simulations = {10**12} is not allowed: "
        "use a whole number at least 50 and at most 100,000.",
    )


def test_the_page_is_written_at_once(command: Command, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    done = command(*SMALL, "uniform", "linucb", "--page", target)
    assert f"wrote {target}" in done.out
    assert "<html" in target.read_text() and "linucb" in target.read_text()


# ---- a terminal that is gone, full or poor --------------------------------------------------


class Failing(io.StringIO):
    """A standard output whose every write fails."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


#: Commands that write a file of results.
SAVING: dict[str, tuple[str, ...]] = {
    "run": (*SMALL, "uniform", "linucb"),
    "posterior": (
        *("posterior", "lints", "--rounds", "30", "--draws", "120"),
        *("--chains", "10", "--steps", "1"),
    ),
    "calibrate": ("calibrate", "lints", "--simulations", "50", "--rounds", "5"),
}
#: What is wrong with standard output, the code that the command ends with, and what it says.
UNPRINTABLE: dict[str, tuple[OSError, int, str]] = {
    "pipe": (BrokenPipeError(32, "Broken pipe"), 0, ""),
    "disk": (
        OSError(28, "No space left on device"),
        2,
        "feelgood: cannot print the output (No space left on device): print it elsewhere; "
        "files that were asked for are written.\n",
    ),
}


@pytest.mark.parametrize(
    ("saving", "wrong"),
    slow_but([("run", "pipe"), ("run", "disk")], itertools.product(SAVING, UNPRINTABLE)),
)
def test_results_are_saved_though_nothing_can_be_printed(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    saving: str,
    wrong: str,
) -> None:
    error, code, message = UNPRINTABLE[wrong]
    file, where = tmp_path / "r.json", ("--json", tmp_path / "r.json")
    if saving == "run":
        file, where = tmp_path / "out" / "results.json", ("--out", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Failing(error))
        done = command(*SAVING[saving], *where)
    assert (done.code, done.err) == (code, message)
    assert json.loads(file.read_text())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_and_a_closed_pipe_as_processes() -> None:
    """In a real process Python flushes buffered output after our own code has ended."""
    code = [sys.executable, "-m", "feelgood", "--help"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(code, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(code, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_our_signs_shows_question_marks(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    poor = io.TextIOWrapper(raw, encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", poor)
        assert command(*SMALL, "uniform", "linucb").code == 0
    poor.flush()
    assert b"2 seeds (mean ? std)" in raw.getvalue()


def test_a_disk_that_fills_up_leaves_no_half_file(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    target.write_text("old")

    def fails(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(FeelgoodError, match="No space left on device"):
        output.write_atomically(target, fails)
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


# ---- Ctrl-C ---------------------------------------------------------------------------------


def wait_for(path: Path, running: subprocess.Popen[str]) -> None:
    for _ in range(1200):
        if path.exists():
            return
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)
    raise AssertionError("it never began")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_keeps_and_reports_what_is_finished(tmp_path: Path) -> None:
    """The second agent thinks for hours; the interrupt comes while it does."""
    started, target = tmp_path / "started", tmp_path / "r.json"
    running = process(
        *("run", "seesaw", "copycat", "tortoise", "--rounds", "1000000", "--seeds", "2"),
        *("--plugin", PLUGIN, "--json", target),
        FEELGOOD_TEST_STARTED=str(started),
    )
    wait_for(started, running)
    time.sleep(2)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "copycat" in out and "tortoise" not in out
    assert f"wrote {target}" in out
    assert err == "feelgood: interrupted; 1 finished result(s) are kept.\n"
    tree = json.loads(target.read_text())
    assert tree["interrupted"] is True
    (entry,) = tree["results"]
    assert entry["agent"] == "copycat" and entry["status"] == "ok"
    assert len(entry["final_regret"]) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.slow
def test_ctrl_c_before_the_first_result_leaves_old_files_alone(tmp_path: Path) -> None:
    started, target = tmp_path / "started", tmp_path / "r.json"
    target.write_text("old results")
    running = process(
        *("run", "seesaw", "tortoise", "--rounds", "1000000", "--plugin", PLUGIN),
        *("--json", target, "--force"),
        FEELGOOD_TEST_STARTED=str(started),
    )
    wait_for(started, running)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == ""
    assert err == "feelgood: interrupted; 0 finished result(s) are kept.\n"
    assert target.read_text() == "old results"


# ---- plugins --------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_agent_and_a_testbed_from_outside_run_through_the_command(tmp_path: Path) -> None:
    running = process(
        *("run", "seesaw", "copycat", "linucb", "--seeds", "3", "--plugin", PLUGIN),
        *("--set", "copycat.optimism=9,-9", "--set", "testbed.tilt=2", "--json", "-"),
    )
    out, err = running.communicate()
    assert running.returncode == 0, err
    results = json.loads(out)["results"]
    assert [(r["agent"], r["settings"].get("optimism")) for r in results] == [
        ("copycat", 9.0),
        ("copycat", -9.0),
        ("linucb", None),
    ]
    for r in results:
        assert (r["testbed"], r["rounds"], r["status"]) == ("seesaw", 25, "ok")
        assert r["testbed_settings"] == {"tilt": 2.0}
    listed, _ = process("list", "--plugin", PLUGIN).communicate()
    assert "copycat" in listed and "seesaw" in listed
    _, err = process("run", "seesaw", "copyca", "--plugin", PLUGIN).communicate()
    assert "did you mean 'copycat'?" in err


def test_a_broken_plugin_is_one_sentence(command: Command, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    refused(
        command(*SMALL, "uniform", "--plugin", broken),
        f"plugin '{broken}' could not be imported (ZeroDivisionError: division by zero): "
        "mend it or leave it out.",
    )
    broken.write_text("from feelgood import AGENTS, Policy\nAGENTS.register('lints')(Policy)\n")
    refused(
        command(*SMALL, "uniform", "--plugin", broken),
        "the agent name 'lints' is taken: register under another name.",
    )


VALUES = [("0.1", 0.1), ("3", 3), ("true", True), ("sqrt", "sqrt"), ("1,2.5", [1, 2.5])]


@pytest.mark.parametrize(
    ("text", "value"), [*VALUES, ("a, b", ["a", "b"]), ("9" * 5000, "9" * 5000)]
)
def test_values(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_settings_of_names_with_dots_and_dashes() -> None:
    pairs = ["wheel-0.5.mu1=3", "epsgreedy-tabular.epsilon=0.2", "epsgreedy-tabular.decay=none"]
    assert parse_set_options(pairs) == {
        "wheel-0.5": {"mu1": 3},
        "epsgreedy-tabular": {"epsilon": 0.2, "decay": "none"},
    }
