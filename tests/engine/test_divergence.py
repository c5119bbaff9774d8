"""A chain that breaks is marked with its round; the others go on; every report says so."""

import io
import json
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from rounds import decide
from toys import Coins, Doomed, LanedDoomed, Witness

import feelgood
from feelgood import AGENTS, FeelgoodError, Spec, Status, setting
from feelgood.agents import LinTS
from feelgood.agents.thompson import Thompson
from feelgood.api.run_result import RunResult
from feelgood.cli import output
from feelgood.core.settings import settings_of
from feelgood.core.spec import Number
from feelgood.engine.results import AgentResult
from feelgood.engine.simulation import simulate
from feelgood.numerics import lanes
from feelgood.numerics.keys import AGENT, fold_in, seed_array, seed_keys
from feelgood.posterior.chains import gather
from feelgood.samplers.mala import MALA

ROUNDS, SEEDS, VICTIM = 40, (3, 5, 8), 1


def forced(policy: Any, **values: float) -> Any:
    """A policy with settings that it would refuse."""
    for name, value in values.items():
        policy = eqx.tree_at(lambda p, n=name: getattr(p, n), policy, jnp.float32(value))
    return policy


def mark_of(seed: int) -> float:
    """The first uniform that a chain of this seed draws."""
    key = fold_in(seed_keys(seed_array([seed]), AGENT)[0], 0)
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
        "1 of 3 chains diverged, the first in round 17: parameters or scores became infinite or NaN"
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


# ---- what is not a number -------------------------------------------------------------------

#: Settings that make an agent cheap, and an ε-greedy one choose at random.
CHEAP = {
    "lints": {},
    "linucb": {},
    "epsgreedy": {"epsilon": 1.0},
    "lmcts": {"steps": 1},
    "neural-ts": {"layers": "4"},
    "neural-ucb": {"layers": "4"},
    "neural-linear": {"layers": "4"},
    "neural-eps-greedy": {"layers": "4", "epsilon": 1.0},
    "neural-lmcts": {"layers": "4", "updates": 1},
    "blackjax:barker": {"steps": 1},
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] if n.startswith(("neural-", "blackjax")) else [])
        for n in CHEAP
    ],
)
def test_no_arm_is_chosen_by_scores_that_are_no_numbers(name: str) -> None:
    policy = AGENTS[name].build(CHEAP[name])
    key, spec = jax.random.key(0), Spec(arms=3, dim=2)
    act = jax.jit(lambda state, context: decide(policy, spec, key, state, context)[0])
    state = policy.init(key, spec)
    assert 0 <= act(state, jnp.ones(2)) < 3
    for bad in (jnp.nan, jnp.inf):
        assert act(state, jnp.asarray([1.0, bad])) == 3


def test_the_first_largest_score_wins_and_one_bad_score_spoils_all() -> None:
    scores = jnp.asarray([[1.0, 3.0, jnp.nan, -jnp.inf], [2.0, 3.0, 9.0, 0.0]])
    assert lanes.argmax(scores).tolist() == [1, 0, 2, 2]
    assert lanes.argmax(scores[:, 0]) == 1


def test_scores_that_are_no_numbers_are_a_divergence_in_their_round() -> None:
    """`eta` is 0 to a processor: every draw is infinite, though the state is sound."""
    outcome = simulate(Coins(), forced(LinTS(eta=1.0), eta=1e-39), rounds=5, seeds=[0, 1])
    assert outcome.diverged_at.tolist() == [[1, 1]]
    assert np.isnan(outcome.final_regret).all()
    with pytest.raises(FeelgoodError, match="seed 3 diverged in round 1: use other settings"):
        gather(Coins(), forced(LinTS(eta=1.0), eta=1e-39), 5, 3)


def test_a_step_that_is_no_number_is_a_divergence_though_its_filter_rejects_it() -> None:
    outcome = simulate(
        Coins(), forced(Thompson(kernel=MALA(), steps=1), step=np.nan), rounds=3, seeds=[0]
    )
    assert outcome.diverged_at.tolist() == [[1]]


@pytest.mark.parametrize("arm", [3.0, -1.0])
def test_an_arm_that_does_not_exist_is_a_divergence(arm: float) -> None:
    outcome = simulate(Coins(), [Witness(arm=1.0), forced(Witness(), arm=arm)], rounds=4, seeds=[0])
    assert outcome.diverged_at.tolist() == [[-1], [1]]


SMALL = "in single precision, in which everything is computed, it is 0; use a number at least"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ({"lints": {"eta": 1e-39}}, f"lints.eta = 1e-39 is not allowed: {SMALL} 1.2e-38 in size."),
        ({"lints": {"eta": [1.0, 1e-45]}}, f"lints.eta = 1e-45 is not allowed: {SMALL}"),
        ({"testbed": {"scale": 1e-38}}, "scale = 1e-38 is not allowed: use a finite number at"),
        ({"testbed": {"noise": 1e-300}}, f"linear-20.noise = 1e-300 is not allowed: {SMALL}"),
    ],
)
def test_numbers_that_vanish_in_single_precision_are_refused(call: Any, sentence: str) -> None:
    with pytest.raises(FeelgoodError) as caught:
        feelgood.run("linear-20", ["lints"], rounds=5, seeds=1, settings=call)
    assert sentence in str(caught.value)


def test_bounds_hold_after_rounding_too() -> None:
    class Plain(Witness):
        big: Number = setting(2.0, "anything", above=1.0)

    rule = settings_of(Plain)["big"]
    assert rule.check("plain", "big", 1.1) == 1.1
    for value, seen in ((1e39, "infinite"), (1.0 + 1e-12, "1")):
        with pytest.raises(FeelgoodError, match=f"it is {seen}; use a number"):
            rule.check("plain", "big", value)
