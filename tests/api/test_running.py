"""`feelgood.run`: what goes in, what comes out, what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toys import Biased

import feelgood
from feelgood import AGENTS, FeelgoodError
from feelgood.agents import LinUCB, Uniform
from feelgood.api.run_result import RunResult
from feelgood.core.arguments import MAX_ROUNDS, MAX_SEEDS, parse_rounds, parse_seeds
from feelgood.core.parquet import read_parquet
from feelgood.core.settings import own_settings
from feelgood.testbeds import Linear

TINY = Linear(parameters=6, arms=3)
ROUNDS = 30


@pytest.fixture(scope="module")
def result() -> RunResult:
    return feelgood.run(
        TINY, ["uniform", "linucb"], rounds=ROUNDS, seeds=3, settings={"linucb": {"alpha": [0, 1]}}
    )


# ---- what comes out -------------------------------------------------------------------------


def test_one_result_an_agent_and_setting(result: RunResult) -> None:
    assert len(result) == 3
    assert [(r.agent, dict(r.settings)) for r in result] == [
        ("uniform", {}),
        ("linucb", {"alpha": 0.0, "rho": 0.01}),
        ("linucb", {"alpha": 1.0, "rho": 0.01}),
    ]
    assert result["linucb"] is result[1]
    with pytest.raises(KeyError):
        result["lints"]
    for r in result:
        assert (r.testbed, r.rounds, r.seeds) == ("Linear", ROUNDS, (0, 1, 2))
        assert r.testbed_settings["arms"] == 3
        assert r.final_regret.shape == (3,)
        assert r.curve.shape == (3, ROUNDS)
        assert r.arm_counts.shape == (3, 3)
        assert r.compile_s >= 0 and r.run_s > 0


FIELDS = {
    "agent": str,
    "testbed": str,
    "settings": dict,
    "rounds": int,
    "seeds": list,
    "final_regret": list,
    "simple_regret": list,
    "curve": dict,
    "status": str,
    "compile_s": float,
    "run_s": float,
}


def test_json_has_the_fields_that_were_promised(result: RunResult) -> None:
    tree = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert list(tree) == ["results"]
    assert len(tree["results"]) == 3
    for entry, r in zip(tree["results"], result, strict=True):
        for name, kind in FIELDS.items():
            assert isinstance(entry[name], kind), name
        assert entry["seeds"] == [0, 1, 2]
        np.testing.assert_allclose(entry["final_regret"], r.final_regret)
        assert entry["curve"]["rounds"] == list(range(1, ROUNDS + 1))
        np.testing.assert_allclose(entry["curve"]["mean"], r.curve.mean(axis=0))
        np.testing.assert_allclose(entry["curve"]["std"], r.curve.std(axis=0, ddof=1))
        assert entry["status"] == "ok"


def test_one_seed_has_no_spread(result: RunResult) -> None:
    (one,) = feelgood.run(TINY, ["uniform"], rounds=ROUNDS, seeds=[1])
    entry = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert entry["curve"]["std"] == [None] * ROUNDS
    np.testing.assert_array_equal(one.curve[0], result["uniform"].curve[1])


def test_summary_has_one_row_each(result: RunResult) -> None:
    rows = result.summary()
    assert [row["agent"] for row in rows] == ["uniform", "linucb", "linucb"]
    for row, r in zip(rows, result, strict=True):
        assert row["seeds"] == row["regret_count"] == 3
        assert row["regret_mean"] == pytest.approx(r.final_regret.mean())
        assert row["regret_sem"] == pytest.approx(r.final_regret.std(ddof=1) / np.sqrt(3))
        assert row["simple_median"] == pytest.approx(np.median(r.simple_regret))


def test_arrow_has_one_row_a_seed_and_survives_parquet(result: RunResult, tmp_path: Path) -> None:
    table = result.to_arrow()
    assert isinstance(table, pa.Table)
    assert table.num_rows == 9
    pq.write_table(table, tmp_path / "t.parquet")
    back = read_parquet((tmp_path / "t.parquet").read_bytes())
    assert back.equals(table)
    rows = back.to_pylist()
    assert [row["seed"] for row in rows] == [0, 1, 2] * 3
    assert json.loads(rows[-1]["settings"]) == {"alpha": 1.0, "rho": 0.01}
    np.testing.assert_array_equal(rows[-1]["curve_regret"], result[2].curve[2])
    assert rows[0]["status"] == "ok" and rows[0]["diverged_at"] is None
    assert RunResult(()).to_arrow().num_rows == 0


def test_objects_and_names_give_the_same() -> None:
    by_name = feelgood.run(
        "linear-6",
        ["linucb"],
        rounds=ROUNDS,
        seeds=2,
        settings={"testbed": {"arms": 3}, "linucb": {"alpha": 0.5}},
    )
    by_object = feelgood.run(TINY, [LinUCB(alpha=0.5)], rounds=ROUNDS, seeds=2)
    np.testing.assert_array_equal(by_name[0].curve, by_object[0].curve)
    assert by_name[0].testbed == "linear-6" and by_name[0].agent == "linucb"
    assert by_object[0].testbed == "Linear" and by_object[0].agent == "LinUCB"
    assert by_object[0].settings == by_name[0].settings


@pytest.mark.parametrize("agents", ["uniform", Uniform(), ("uniform",), {"uniform": "uniform"}])
def test_one_agent_or_several(agents: Any) -> None:
    (one,) = feelgood.run(TINY, agents, rounds=5, seeds=2)
    assert one.agent.lower() == "uniform"


def test_names_by_hand_and_their_settings() -> None:
    named: Any = {"a": "linucb", "b": "linucb"}
    result = feelgood.run(TINY, named, rounds=5, seeds=2, settings={"b": {"alpha": 0.5}})
    assert [(r.agent, r.settings["alpha"]) for r in result] == [("a", 1.0), ("b", 0.5)]


def test_arrays_are_sweeps_and_seeds() -> None:
    lists, arrays = (
        feelgood.run(TINY, "linucb", rounds=5, seeds=s, settings={"linucb": {"alpha": a}})
        for s, a in (
            ([3, 1], [0.1, 0.7]),
            (np.array([3, 1]), np.array([0.1, 0.7], np.float32)),
        )
    )
    assert [r.settings for r in arrays] == [r.settings for r in lists]
    assert arrays[0].seeds == (3, 1)
    assert parse_seeds(np.int64(2)) == parse_seeds(np.array(2)) == (0, 1)
    assert parse_rounds(np.int32(7)) == 7


def test_objects_show_the_settings_of_their_parts() -> None:
    agent = AGENTS["hmcts"].build({"leapfrog": 3, "beta": 0.1})
    settings = own_settings(agent)
    assert (settings["leapfrog"], settings["beta"]) == (3, 0.1)
    assert set(AGENTS["hmcts"].settings) <= set(settings)


def test_objects_of_one_class_and_another_shape_are_run_apart() -> None:
    agents = [Biased(weights=jnp.arange(3.0)), Biased(weights=jnp.zeros(3, jnp.float16))]
    assert len(feelgood.run(TINY, agents, rounds=5, seeds=2)) == 2


def test_a_bar_is_shown_on_a_terminal_only(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for shown in (True, False, None):
        feelgood.run(TINY, "uniform", rounds=5, seeds=2, progress=shown)
        assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # which rich takes for a terminal
    feelgood.run(TINY, "uniform", rounds=5, seeds=2, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "uniform" in err and "rounds" in err


def test_settings_of_a_testbed_by_its_own_name() -> None:
    runs = [
        feelgood.run(
            "wheel-0.5", ["uniform"], rounds=ROUNDS, seeds=2, settings={label: {"mu3": 5.0}}
        )
        for label in ("testbed", "wheel-0.5")
    ]
    np.testing.assert_array_equal(runs[0][0].curve, runs[1][0].curve)
    assert runs[0][0].testbed_settings["mu3"] == 5.0


def test_lists_of_settings_are_crossed() -> None:
    settings: Any = {"epsgreedy": {"epsilon": [0.1, 0.2], "decay": ["none", "sqrt"]}}
    result = feelgood.run(TINY, ["epsgreedy"], rounds=5, seeds=2, settings=settings)
    pairs = {(r.settings["epsilon"], r.settings["decay"]) for r in result}
    assert pairs == {(0.1, "none"), (0.1, "sqrt"), (0.2, "none"), (0.2, "sqrt")}


def test_the_usual_horizon_is_the_testbeds() -> None:
    short = Linear(parameters=6, arms=3, horizon=7)
    assert feelgood.run(short, ["uniform"], seeds=1)[0].rounds == 7


def test_results_come_one_by_one() -> None:
    work = feelgood.run_each(TINY, ["uniform", "linucb"], rounds=5, seeds=2)
    assert next(work).agent == "uniform"
    assert next(work).agent == "linucb"
    assert next(work, None) is None


def test_progress_goes_from_nothing_to_everything() -> None:
    seen: list[tuple[str, int, int]] = []
    feelgood.run(
        TINY, ["uniform", "linucb"], rounds=20, seeds=3, progress=lambda *a: seen.append(a)
    )
    for agent in ("uniform", "linucb"):
        done = [d for label, d, total in seen if label == agent]
        assert done[0] == 0 and done[-1] == 60 and done == sorted(done)
    assert {total for _, _, total in seen} == {60}


def test_importing_needs_nothing_of_the_shell() -> None:
    """The compute layers must run where there is no command line, no Arrow, no terminal."""
    code = """
import sys
import feelgood
shell = {"typer", "click", "rich", "pyarrow", "pandas", "scipy.stats", "matplotlib"}
loaded = sorted(shell & set(sys.modules))
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- what is refused ------------------------------------------------------------------------

GOOD_SEEDS: list[tuple[Any, tuple[int, ...]]] = [
    (3, (0, 1, 2)),
    ("3", (0, 1, 2)),
    ("4:7", (4, 5, 6)),
    ([5, 2], (5, 2)),
    (range(2, 4), (2, 3)),
    ([2**32 - 1], (2**32 - 1,)),
]


@pytest.mark.parametrize(("given", "expected"), GOOD_SEEDS)
def test_seeds(given: Any, expected: tuple[int, ...]) -> None:
    assert parse_seeds(given) == expected


BAD_SEEDS = [0, -1, "0", "-3", "3:3", "5:2", "-1:3", "a", "1:b", ":", "", "1.5", [], [1, 1], [-1]]
BAD_SEEDS += [[2**32]]


@pytest.mark.parametrize("given", BAD_SEEDS)
def test_seeds_that_make_no_sense(given: Any) -> None:
    with pytest.raises(FeelgoodError) as caught:
        parse_seeds(given)
    assert str(caught.value) == (
        f"seeds = {given!r} is not allowed: "
        "give a positive number N, a range A:B with 0 ≤ A < B, or a list of seeds."
    )


@pytest.mark.parametrize(
    "given", [MAX_SEEDS + 1, 10**30, "0:100000000000000000000000", "999999999"]
)
def test_absurdly_many_seeds(given: Any) -> None:
    with pytest.raises(FeelgoodError, match=f"are too many: use at most {MAX_SEEDS:,}"):
        parse_seeds(given)


@pytest.mark.parametrize("given", [0, -5, MAX_ROUNDS + 1, 10**40, True])
def test_rounds_that_make_no_sense(given: int) -> None:
    with pytest.raises(FeelgoodError) as caught:
        parse_rounds(given)
    assert str(caught.value) == (
        f"rounds = {given!r} is not allowed: use 1 to {MAX_ROUNDS:,} rounds."
    )


class Duck:
    """Has what an agent and a testbed have, and is neither."""

    act = update = rewards = mean_rewards = None


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"agents": []}, "no agent was named"),
    ({"agents": ["lint"]}, "unknown agent 'lint': did you mean 'lints'"),
    ({"testbed": "liner-20"}, "unknown testbed 'liner-20': did you mean 'linear-20'"),
    ({"rounds": 0}, "rounds = 0 is not allowed"),
    ({"seeds": 0}, "seeds = 0 is not allowed"),
    ({"settings": {"linucb": {"alpha": -1}}}, "linucb.alpha = -1 is not allowed: use a finite num"),
    ({"settings": {"linucb": {"alpha": [1, -1]}}}, "linucb.alpha = -1 is not allowed"),
    ({"settings": {"linucb": {"alpha": []}}}, r"linucb.alpha = \[\] is not allowed"),
    ({"settings": {"linucb": {"alhpa": 1}}}, "linucb has no setting 'alhpa': did you mean 'alpha'"),
    ({"settings": {"lints": {"eta": 1}}}, "settings are given for 'lints', which is not in this"),
    ({"settings": {"testbed": {"arms": 3}}}, "linear-20 cannot be split over 3 arms"),
    ({"settings": {"testbed": {"arm": 4}}}, "linear-20 has no setting 'arm': did you mean 'arms'"),
    (
        {"agents": [LinUCB()], "settings": {"LinUCB": {"alpha": 1}}},
        "settings of LinUCB are given with the object itself",
    ),
    ({"agents": LinUCB}, r"LinUCB is a class: make an object of it, LinUCB\(\)"),
    ({"agents": ["lints", int]}, "the class int is no agent: derive it from feelgood.Policy"),
    ({"agents": [Duck()]}, "is no agent: derive its class Duck from feelgood.Policy"),
    ({"agents": TINY}, "Linear is no agent: give a name such as 'lints'"),
    ({"agents": None}, "None is no agent: use a name such as 'lints'"),
    ({"agents": {"lints": LinUCB()}}, "'lints' is the name of another agent already"),
    ({"agents": ["lints", "lints"]}, "'lints' is in this run twice with the same settings"),
    ({"testbed": Linear}, r"Linear is a class: make an object of it, Linear\(\)"),
    ({"testbed": Duck()}, "is no testbed: derive its class Duck from feelgood.Testbed"),
    ({"testbed": "lints"}, "'lints' is an agent, not a testbed: name the testbed first"),
    (
        {"settings": {"testbed": {"noise": 1}, "linear-20": {"noise": 2}}},
        "testbed.noise and linear-20.noise are both given: leave one out",
    ),
    ({"settings": {"linucb": {"alpha": np.array([1.0, -1.0])}}}, "linucb.alpha = -1.0 is not al"),
    ({"settings": {"linucb": {"alpha": np.array([])}}}, "give at least one value"),
    ({"preset": "papr"}, "unknown preset 'papr': did you mean 'paper'"),
    ({"progress": 3}, "progress = 3 is not allowed: use True for a bar, or a function"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_bad_input_is_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    """`run_each` checks at the call, not at the first result."""
    arguments = {"testbed": "linear-20", "agents": ["linucb"], "rounds": 5, "seeds": 1} | changes
    with pytest.raises(FeelgoodError, match=message):
        feelgood.run_each(arguments.pop("testbed"), arguments.pop("agents"), **arguments)


def test_settings_beside_a_testbed_object_are_refused() -> None:
    with pytest.raises(FeelgoodError, match="settings of Linear are given with the object itself"):
        feelgood.run_each(TINY, ["uniform"], rounds=5, seeds=1, settings={"testbed": {"arms": 2}})
