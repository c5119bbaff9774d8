"""Without a preset every agent of the grammar is sound, also on data of another scale or shape."""

import itertools
from functools import cache

import numpy as np
import pytest
from grids import slow_but

import feelgood
from feelgood.agents.grammar import all_names, parts_of

PROBLEMS: dict[str, dict[str, float]] = {
    "as it is": {},
    "features times 100": {"scale": 100.0},
    "condition number 10⁴": {"condition": 1e4},
}


@cache
def run(agent: str, problem: str, rounds: int, seeds: int) -> feelgood.AgentResult:
    settings = {"testbed": PROBLEMS[problem]}
    return feelgood.run("linear-20", [agent], rounds=rounds, seeds=seeds, settings=settings)[0]


def check(agent: str, problem: str, rounds: int, seeds: int) -> None:
    parts = parts_of(agent)
    assert parts is not None
    result = run(agent, problem, rounds, seeds)
    assert result.status == "ok", result.status
    assert np.isfinite(result.final_regret).all()
    if parts.preconditioned or problem != "condition number 10⁴":
        assert result.regret.mean <= 2 * run("lints", problem, rounds, seeds).regret.mean
    if parts.kernel.adjusted:
        last = result.health["acceptance"][:, result.curve_rounds > 0.9 * rounds]
        assert 0.4 <= last.mean() <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "agent"),
    slow_but([("features times 100", "hmcts")], itertools.product(PROBLEMS, ("plmcts", "hmcts"))),
)
def test_a_few_agents(problem: str, agent: str) -> None:
    check(agent, problem, rounds=1000, seeds=8)


@pytest.mark.slow
@pytest.mark.parametrize("agent", all_names())
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_agent(agent: str, problem: str) -> None:
    check(agent, problem, rounds=3000, seeds=8)
