"""Whatever a public function is given, the answer is one sentence, before anything is compiled.

Every argument of every function gets every kind of junk, apart from the kinds that it allows. The
tests run with run-time checks of types; the last one runs all calls once more without.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import feelgood
from feelgood import AGENTS, TESTBEDS, AgentResult, FeelgoodError
from feelgood.agents import LinUCB, Uniform
from feelgood.posterior import analyse, analyse_each, calibrate
from feelgood.report.chain_costs import chain_cost, gradient_curve
from feelgood.report.ranking import common_seeds, compare_results, rank_results, values_at
from feelgood.stats.intervals import bootstrap
from feelgood.stats.pairs import paired_difference, probability_better
from feelgood.stats.ranks import rank, rank_across
from feelgood.stats.student import t_quantile
from feelgood.stats.welch import welch, welch_samples
from feelgood.studies import Store, plan_cells, read_study, run_study
from feelgood.testbeds import Classification, Linear, Payoffs, Wheel

LONGEST = 300


class Duck:
    """Looks like an agent, and like a testbed."""

    act = update = init = rewards = mean_rewards = context = probe = lambda self: None


class Rude:
    """Cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


JUNK: dict[str, Any] = {
    "none": None,
    "true": True,
    "whole": 3,
    "negative": -5,
    "huge": 10**5000,
    "fraction": 2.5,
    "nan": float("nan"),
    "complex": 1j,
    "text": "nonsense",
    "empty text": "",
    "long text": "x\n" * 5000,
    "bytes": b"lints",
    "empty list": [],
    "list": ["nonsense", None],
    "nested list": [[1.0, 2.0], [3.0]],
    "long list": [0.5] * 10**6,
    "dict": {"nonsense": 1},
    "dict by number": {1: {"alpha": 1}},
    "set": {1, 2},
    "array": np.array([0.5, 1.5]),
    "table": np.eye(2),
    "text array": np.array(["a", "b"]),
    "complex array": np.array([1j, 2.0]),
    "masked array": np.ma.array([1.0, 2.0], mask=[0, 1]),
    "object array": np.array([None, Uniform], dtype=object),
    "class": Uniform,
    "other class": int,
    "object": Duck(),
    "rude object": Rude(),
    "function": len,
    "module": np,
}
UNHASHABLE = tuple(
    kind for kind, value in JUNK.items() if isinstance(value, (list, dict, set, np.ndarray))
)
NUMBERS = ("whole", "negative", "fraction", "true", "huge")


def result() -> AgentResult:
    """A made-up result of three seeds."""
    return AgentResult(
        agent="lints",
        testbed="linear-20",
        settings={},
        testbed_settings={},
        rounds=2,
        seeds=(0, 1, 2),
        final_regret=np.arange(3.0),
        simple_regret=np.arange(3.0),
        best_arm_rate=np.ones(3),
        arm_counts=np.ones((3, 2), np.int64),
        curve_rounds=np.array([1, 2]),
        curve=np.ones((3, 2)),
        health={},
        ess=np.full(3, np.nan),
        diverged_at=np.full(3, -1),
        compile_s=0.0,
        run_s=0.0,
    )


class Call(NamedTuple):
    """A function, arguments that are right, and for each the kinds of junk that are right too."""

    function: Callable[..., Any]
    right: dict[str, Any]
    allowed: dict[str, tuple[str, ...]]


RUN = Call(
    feelgood.run_each,
    {"testbed": Linear(parameters=6, arms=3), "agents": ["uniform"], "rounds": 5, "seeds": 1},
    {
        "testbed": (),
        "agents": (),
        "rounds": ("none", "whole"),
        "seeds": ("whole",),
        "settings": ("none",),
        "preset": ("none",),
        "posterior_every": ("none", "whole"),
        "progress": ("none", "true", "class", "other class", "function"),
    },
)
FUNCTIONS = ("function", "class", "other class")
VALUES = {"a": np.arange(3.0), "b": np.arange(3.0)}
LISTS = ("array", "empty list", "long list")
CALLS: dict[str, Call] = {
    "run_each": RUN,
    "run": RUN._replace(function=feelgood.run),
    "tune": Call(
        feelgood.tune,
        {"agent": "linucb", "testbed": RUN.right["testbed"], "budget": 2, "rounds": 5, "seeds": 1},
        {
            "agent": (),
            "testbed": (),
            "budget": ("whole",),
            "rounds": ("none", "whole"),
            "seeds": ("whole",),
            "settings": ("none",),
            "preset": ("none",),
            "progress": ("none", "true", "class", "other class", "function"),
        },
    ),
    "one_agent": Call(lambda agent: feelgood.run_each("linear-20", [agent]), {}, {"agent": ()}),
    "named_agent": Call(
        lambda agent, name: feelgood.run_each("linear-20", {name: agent}, rounds=5),
        {"agent": "uniform", "name": "a"},
        {"agent": (), "name": ("text", "long text", *UNHASHABLE)},
    ),
    "settings of an agent": Call(
        lambda values: feelgood.run_each("linear-20", "linucb", settings={"linucb": values}),
        {},
        {"values": ("none",)},
    ),
    "settings of a testbed": Call(
        lambda values: feelgood.run_each("linear-20", "linucb", settings={"testbed": values}),
        {},
        {"values": ("none",)},
    ),
    "one setting": Call(
        lambda value: feelgood.run_each(
            "wheel-0.5", "linucb", settings={"linucb": {"alpha": value}}
        ),
        {},
        {"value": ("whole", "fraction", "long list", "array")},
    ),
    "a number of an object": Call(LinUCB, {}, {"alpha": ("whole", "fraction")}),
    "a whole number of an object": Call(
        Linear, {}, {"arms": (), "parameters": (), "horizon": ("whole",)}
    ),
    "a truth value of an object": Call(Wheel, {}, {"intercept": ("true",)}),
    "simulate": Call(
        feelgood.simulate,
        {"testbed": RUN.right["testbed"], "policies": Uniform(), "rounds": 5, "seeds": [0]},
        {
            "testbed": (),
            "policies": (),
            "rounds": ("whole",),
            "seeds": ("whole",),
            "progress": ("none", *FUNCTIONS),
            "workers": ("none", "whole"),
            "checkpoints": ("none",),
            "notify": ("none", *FUNCTIONS),
            "along": ("none",),
        },
    ),
    "AGENTS": Call(AGENTS.__getitem__, {}, {"name": ()}),
    "TESTBEDS": Call(TESTBEDS.__getitem__, {}, {"name": ()}),
    "build an agent": Call(AGENTS["linucb"].build, {}, {"values": ("none",)}),
    "build a testbed": Call(TESTBEDS["linear-20"].build, {}, {"values": ("none",)}),
    "load": Call(feelgood.load, {}, {"folder": ()}),
    "save": Call(lambda folder: feelgood.RunResult(()).save(folder), {}, {"folder": ()}),
    "welch": Call(
        welch,
        {"mean_a": 1.0, "std_a": 1.0, "n_a": 3, "mean_b": 1.0, "std_b": 1.0, "n_b": 3},
        {
            **{name: ("whole", "negative", "fraction", "nan") for name in ("mean_a", "std_b")},
            **{name: ("whole",) for name in ("n_a", "n_b")},
            "level": (),
        },
    ),
    "welch_samples": Call(welch_samples, VALUES, {"a": LISTS, "b": LISTS, "level": ()}),
    "bootstrap": Call(
        bootstrap,
        {"values": np.arange(3.0)},
        {
            "values": LISTS,
            "statistic": (),
            "level": (),
            "draws": ("whole",),
            "seed": ("whole", "huge"),
        },
    ),
    "paired_difference": Call(
        paired_difference, VALUES, {"a": (), "b": (), "level": (), "draws": ("whole",)}
    ),
    "probability_better": Call(probability_better, VALUES, {"a": (), "b": (), "level": ()}),
    "rank": Call(rank, {"values": VALUES}, {"values": (), "level": ()}),
    "rank_across": Call(rank_across, {"testbeds": {"t": VALUES}}, {"testbeds": (), "level": ()}),
    "common_seeds": Call(common_seeds, {}, {"results": ()}),
    "values_at": Call(
        values_at,
        {"result": result(), "seeds": [0]},
        {"result": (), "seeds": ("empty list",), "metric": ()},
    ),
    "compare_results": Call(
        compare_results,
        {"a": result(), "b": result()},
        {"a": (), "b": (), "metric": (), "level": ()},
    ),
    "rank_results": Call(
        rank_results,
        {"results": [result()]},
        {"results": (), "names": ("none",), "metric": (), "level": ()},
    ),
    "chain_cost": Call(chain_cost, {}, {"result": ()}),
    "gradient_curve": Call(gradient_curve, {}, {"result": ()}),
    "t_quantile": Call(
        t_quantile,
        {"level": 0.9, "df": 2.0},
        {"level": (), "df": ("whole", "fraction", "nan")},
    ),
    "results by name": Call(feelgood.RunResult((result(),)).__getitem__, {}, {"which": NUMBERS}),
    "results compared": Call(feelgood.RunResult((result(),)).compare, {}, {"baseline": ()}),
    "results drawn": Call(feelgood.RunResult((result(),)).plot, {}, {"band": ()}),
    "analyse_each": Call(
        analyse_each,
        {"agents": ["lints"], "draws": 120, "chains": 10, "rounds": 20},
        {
            "agents": (),
            "testbed": (),
            "rounds": ("none", "whole"),
            "draws": (),
            "steps": ("whole",),
            "chains": (),
            "burn": ("whole",),
            "mode": (),
            "gatherer": (),
            "seeds": ("whole",),
            "preset": ("none",),
            "settings": ("none",),
            "live": ("true",),
            "level": (),
            "progress": ("none", *FUNCTIONS),
        },
    ),
    "analyse": Call(analyse, {"rounds": 20}, {"agents": (), "testbed": (), "seeds": ("whole",)}),
    "calibrate": Call(
        calibrate,
        {"agent": "lints", "simulations": 50, "rounds": 5},
        {
            "agent": (),
            "testbed": (),
            "simulations": (),
            "rounds": ("whole",),
            "steps": ("none", "whole"),
            "thin": ("whole",),
            "burn": ("whole",),
            "precision": ("whole", "fraction"),
            "preset": ("none",),
            "settings": ("none",),
            "testbed_settings": ("none",),
            "level": (),
            "seed": ("whole",),
        },
    ),
    "plan_cells": Call(
        plan_cells,
        {"testbed": "linear-20", "agent": "lints", "rounds": 5},
        {
            "testbed": (),
            "agent": (),
            "settings": ("none",),
            "preset": ("none",),
            "rounds": ("none", "whole"),
            "seeds": ("whole",),
            "testbed_settings": ("none",),
            "posterior_every": ("none", "whole"),
        },
    ),
    "read_study": Call(read_study, {}, {"path": ()}),
    "Store": Call(lambda path: Store(path, create=False), {}, {"path": ()}),
    "run_study": Call(
        run_study,
        {"study": None, "store": "nowhere"},
        {"study": (), "store": (), "engine": ("none",), "workers": ("none",)},
    ),
}

#: What makers of testbeds from one's own arrays must refuse.
OWN_DATA_CALLS: dict[str, Call] = {
    "Classification.from_arrays": Call(
        Classification.from_arrays,
        {"features": np.eye(3), "labels": np.array([0, 1, 1])},
        {
            "features": ("table",),
            "labels": (),
            "arms": ("none", "whole"),
            "kinds": (),
            "preprocess": (),
            "horizon": ("whole",),
        },
    ),
    "Payoffs.from_arrays": Call(
        Payoffs.from_arrays,
        {"features": np.eye(2), "payoffs": np.eye(2)},
        {
            "features": ("table",),
            "payoffs": ("table",),
            "kinds": (),
            "preprocess": (),
            "likelihood": (),
            "horizon": ("whole",),
        },
    ),
}


def cases(call: Call) -> list[tuple[str, str]]:
    """(argument, kind of junk) for all that is not allowed."""
    return [
        (argument, kind)
        for argument, allowed in call.allowed.items()
        for kind in JUNK
        if kind not in allowed
    ]


COMPILED: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **more: COMPILED.append(event) if "backend_compile" in event else None
)


def check(call: Call, argument: str, kind: str, quietly: bool = True) -> None:
    """The call is answered by one sentence, at once, and `quietly`: nothing was compiled."""
    COMPILED.clear()
    began = time.process_time()
    try:
        if argument == "which" or (argument == "name" and not call.right):
            call.function(JUNK[kind])  # such as `AGENTS[…]`
        else:
            call.function(**{**call.right, argument: JUNK[kind]})
    except FeelgoodError as error:
        said = str(error)
    else:
        raise AssertionError("it was accepted")
    assert said == said.strip() and "\n" not in said, said
    assert said.endswith((".", "?")) and ". " not in said.replace("e.g. ", ""), said
    assert 10 < len(said) <= LONGEST, said
    assert not (quietly and COMPILED), "something was compiled"
    assert time.process_time() - began < 5.0


def wrong_answers(name: str, call: Call, quietly: bool = True) -> Iterator[str]:
    """The cases of a function that are not answered as they should be."""
    for argument, kind in cases(call):
        try:
            check(call, argument, kind, quietly)
        except Exception as error:
            yield f"{name}: {argument} = {kind}: {type(error).__name__}: {str(error)[:200]}"


def test_there_are_enough_cases() -> None:
    assert sum(len(cases(call)) for call in CALLS.values()) >= 1_500


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_answered_by_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(wrong_answers(name, CALLS[name])) == []
    assert not list(tmp_path.iterdir()), "something was written"


@pytest.mark.parametrize("name", OWN_DATA_CALLS)
def test_junk_as_own_data_is_answered_by_one_sentence(name: str) -> None:
    assert list(wrong_answers(name, OWN_DATA_CALLS[name], quietly=False)) == []


@pytest.mark.slow
def test_without_run_time_checks(tmp_path: Path) -> None:
    """The same in a process of its own, as users run it."""
    words = [sys.executable, "-W", "error", str(Path(__file__).resolve())]
    folder = Path(feelgood.__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


if __name__ == "__main__":
    wrong = [line for name, call in CALLS.items() for line in wrong_answers(name, call)]
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
