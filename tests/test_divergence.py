"""A chain that breaks is marked with its round; the others go on; every report says so."""

import io
import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from rich.console import Console
from toys import Coins, Doomed, LanedDoomed

import feelgood
from feelgood import Status, lanes
from feelgood.cli import output
from feelgood.environment import AGENT, seed_array, seed_keys
from feelgood.results import AgentResult, RunResult
from feelgood.simulate import simulate

ROUNDS, SEEDS, VICTIM = 40, (3, 5, 8), 1


def mark_of(seed: int) -> float:
    """The first uniform that a chain of this seed draws."""
    key = lanes.fold_in(seed_keys(seed_array([seed]), AGENT)[0], 0)
    return float(lanes.uniform(key, 1)[0])


def printed(results: list[AgentResult]) -> str:
    """The table as the command line prints it."""
    console = Console(width=120, file=io.StringIO())
    console.print(output.result_table(results))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture(scope="module", params=[Doomed, LanedDoomed])
def result(request: pytest.FixtureRequest) -> RunResult:
    agent = request.param(mark=mark_of(SEEDS[VICTIM]), round=17.0)
    return feelgood.run(Coins(), [agent], rounds=ROUNDS, seeds=SEEDS)


def test_the_broken_chain_has_a_status_and_a_round(result: RunResult) -> None:
    (one,) = result
    assert one.statuses == (Status.OK, Status.DIVERGED, Status.OK)
    np.testing.assert_array_equal(one.diverged_at, [-1, 17, -1])
    assert one.status == (
        "1 of 3 chains diverged, the first in round 17: "
        "the sampled parameters became infinite or NaN"
    )


def test_its_numbers_end_where_it_broke(result: RunResult) -> None:
    (one,) = result
    np.testing.assert_array_equal(np.isnan(one.final_regret), [False, True, False])
    np.testing.assert_array_equal(np.isnan(one.simple_regret), [False, True, False])
    np.testing.assert_array_equal(np.isnan(one.best_arm_rate), [False, True, False])
    np.testing.assert_array_equal(np.isnan(one.curve[VICTIM]), one.curve_rounds >= 17)


def test_the_others_are_as_if_nothing_had_happened(result: RunResult) -> None:
    (one,) = result
    healthy = simulate(Coins(), Doomed(), rounds=ROUNDS, seeds=SEEDS)
    assert np.all(healthy.diverged_at < 0)
    for i in (0, 2):
        np.testing.assert_array_equal(one.curve[i], healthy.curve[0, i])
        np.testing.assert_array_equal(one.arm_counts[i], healthy.arm_counts[0, i])
    assert one.regret.count == 2
    assert np.all(np.isfinite(one.curve_mean()))


def test_one_chain_alone_breaks_in_the_same_round() -> None:
    agent = Doomed(mark=mark_of(5), round=17.0)
    assert simulate(Coins(), agent, rounds=ROUNDS, seeds=[5]).diverged_at.tolist() == [[17]]


def test_in_a_sweep_only_the_setting_that_breaks_is_marked() -> None:
    agents = [Doomed(mark=mark_of(5), round=r) for r in (11.0, 1000.0)]
    outcome = simulate(Coins(), agents, rounds=ROUNDS, seeds=[5, 6])
    assert outcome.diverged_at.tolist() == [[11, -1], [-1, -1]]


def test_json_table_and_arrow_say_so(result: RunResult) -> None:
    (entry,) = json.loads(json.dumps(result.to_json(), allow_nan=False))["results"]
    assert entry["status"].startswith("1 of 3 chains diverged, the first in round 17")
    assert entry["diverged_at"] == [None, 17, None]
    assert entry["final_regret"][VICTIM] is None
    assert "1 of 3" in printed(list(result))
    table = result.to_arrow().to_pydict()
    assert table["status"] == ["ok", "diverged", "ok"]
    assert table["diverged_at"] == [None, 17, None]


def test_a_table_of_nothing_but_broken_chains_has_no_nan() -> None:
    agent = Doomed(mark=mark_of(5), round=2.0)
    (one,) = feelgood.run(Coins(), [agent], rounds=ROUNDS, seeds=[5])
    text = printed([one, replace(one, agent="again")])
    assert "nan" not in text
    assert "1 of 1" in text


def test_status_members_carry_a_message() -> None:
    assert all(status.message for status in Status)
    assert jax.tree.leaves(Status.OK) == [Status.OK]
