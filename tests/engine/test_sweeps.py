"""A sweep over numbers is one compiled program, and its chains are those of separate runs."""

import jax
import numpy as np
import pytest
from grids import slow_but

import feelgood
from feelgood.core.policy import AGENTS
from feelgood.engine import group
from feelgood.engine.loop import Player
from feelgood.engine.simulation import simulate
from feelgood.testbeds import Linear


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "setting", "values"),
    [
        ("lmcts", "beta", [0.5, 1.0, 2.0, 4.0, 8.0]),
        pytest.param("fglmcts", "lam", [0.01, 0.1, 0.5], marks=pytest.mark.slow),
    ],
)
def test_sweep_equals_separate_runs(agent: str, setting: str, values: list[float]) -> None:
    swept = feelgood.run(
        "linear-20", [agent], rounds=60, seeds=4, settings={agent: {setting: values}}
    )
    assert len(swept) == len(values)
    for result, value in zip(swept, values, strict=True):
        alone = feelgood.run(
            "linear-20", [agent], rounds=60, seeds=4, settings={agent: {setting: value}}
        )[0]
        assert result.settings[setting] == value
        np.testing.assert_allclose(result.final_regret, alone.final_regret, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "setting"), slow_but([("lmcts", "beta")], [("lmcts", "beta"), ("fglmcts", "lam")])
)
def test_sweep_is_one_program(agent: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One structure for all settings, and one playing program."""
    real, programs = group.compiled, set()

    def counting(function: object, *args: object, **options: object) -> object:
        program, seconds = real(function, *args, **options)
        if isinstance(function, Player):
            programs.add(id(program))
        return program, seconds

    monkeypatch.setattr(group, "compiled", counting)
    policies = [AGENTS[agent].build({setting: value}) for value in (0.1, 0.2, 0.3, 0.4, 0.5)]
    assert len({jax.tree.structure(p) for p in policies}) == 1
    outcome = simulate(Linear(), policies, rounds=23, seeds=range(10))
    assert outcome.final_regret.shape == (5, 10)
    assert len(programs) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "setting", "rounds"), [("lmcts", "beta", 5000), ("fglmcts", "lam", 1500)]
)
def test_chain_costs_no_more_in_a_sweep(agent: str, setting: str, rounds: int) -> None:
    """Seconds per chain, best of three each, with 15 % for the noise of the clock."""

    def seconds(values: list[float]) -> float:
        policies = [AGENTS[agent].build({setting: value}) for value in values]
        runs = [simulate(Linear(), policies, rounds=rounds, seeds=range(10)) for _ in range(4)]
        return min(r.run_s for r in runs[1:]) / len(values)

    assert seconds([0.3, 0.4, 0.5, 0.6, 0.7]) <= 1.15 * seconds([0.5])


@pytest.mark.slow
def test_quadratic_agents_cost_the_same_in_every_round() -> None:
    """10 times the rounds take at most 12 times the time."""
    policy = AGENTS["lmcts"].build()
    short, long = (
        min(simulate(Linear(), policy, rounds=n, seeds=range(4)).run_s for _ in range(2))
        for n in (20_000, 200_000)
    )
    assert long <= 12 * short
