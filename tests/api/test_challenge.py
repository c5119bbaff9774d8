"""`feelgood challenge`: a challenger paired with the shipped results."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import feelgood
from feelgood import FeelgoodError
from feelgood.api.challenges import Baseline, baselines, baselines_of, beside, challenge
from feelgood.api.paired_table import FALSE_VERDICT_RATE
from showdown import baselines as shipping
from showdown.keeping import read

ROOT = Path(__file__).resolve().parents[2]

PLUGIN = """
from feelgood import AGENTS
from feelgood.agents.linucb import LinUCB


@AGENTS.register("mine")
class Mine(LinUCB):
    \"\"\"LinUCB under another name.\"\"\"
"""


def test_other_baselines_than_those_of_the_results_are_noticed(tmp_path: Path) -> None:
    """`showdown pages --check`, a test of its own, looks at the shipped ones."""
    kept = read(ROOT / "results", "wheel-0.99")
    target = shipping.write(kept, tmp_path / "baselines.parquet")
    assert shipping.stale(kept, target) == []
    assert shipping.stale([], target) == [str(target)]


def test_an_agent_stands_once_per_preset_and_kind_of_testbed() -> None:
    keys = [(b.testbed, str(b.testbed_settings), b.agent, b.preset) for b in baselines()]
    assert len(keys) == len(set(keys))
    on_linear = {b.agent for b in baselines_of("linear-20") if "paper" in b.preset}
    assert len(on_linear) >= 19


def made(agent: str, regret: np.ndarray) -> Baseline:
    seeds = tuple(range(len(regret)))
    return Baseline("linear-20", {}, agent, {}, "default", 100, seeds, regret)


def result_of(regret: np.ndarray, diverged: int | None = None) -> feelgood.AgentResult:
    template = feelgood.run("linear-20", ["uniform"], rounds=20, seeds=len(regret))[0]
    at = np.full(len(regret), -1)
    if diverged is not None:
        at[diverged] = 7
    return dataclasses.replace(template, agent="mine", final_regret=regret, diverged_at=at)


def test_differences_are_paired_and_the_intervals_hold_together() -> None:
    """Student's interval at level 1 − 0.05/k, which the bootstrap imitates, within a third."""
    rng = np.random.default_rng(3)
    luck = 100 * rng.standard_normal(30)
    mine = luck + rng.standard_normal(30)
    others = [made("twin", luck), made("worse", luck + 5.0), made("better", luck - 5.0)]
    outcome = beside(result_of(mine), others)
    verdicts = {row.baseline.agent: row.verdict for row in outcome.beside}
    assert verdicts == {"twin": "no difference seen", "worse": "better", "better": "worse"}
    assert [row.baseline.agent for row in outcome.beside] == ["better", "twin", "worse"]
    twin = next(row for row in outcome.beside if row.baseline.agent == "twin").difference
    np.testing.assert_allclose(twin.mean, np.mean(mine - luck))
    width = stats.t.ppf(1 - FALSE_VERDICT_RATE / 3 / 2, 29) * stats.sem(mine - luck)
    np.testing.assert_allclose((twin.high - twin.low) / 2, width, rtol=0.33)
    assert "better than 1 of 3 agents and worse than 1" in outcome.sentence


def test_a_diverged_seed_is_left_out_of_the_difference_and_counted() -> None:
    regret = np.arange(6.0)
    outcome = beside(result_of(regret, diverged=2), [made("a", regret - 1.0)])
    assert outcome.beside[0].difference.count == 5
    assert outcome.beside[0].difference.dropped == 1


def test_linucb_meets_its_own_shipped_seeds() -> None:
    """Whoever runs the agent of a baseline again gets its numbers, up to rounding."""
    (outcome,) = challenge("linucb", "linear-20", seeds=2)
    own = next(
        row
        for row in outcome.beside
        if row.baseline.agent == "linucb" and "default" in row.baseline.preset
    )
    np.testing.assert_allclose(
        outcome.result.final_regret, own.baseline.final_regret[:2], rtol=0.02
    )
    assert abs(own.difference.mean) < 0.02 * own.regret


def test_bad_input_gets_one_sentence() -> None:
    with pytest.raises(FeelgoodError, match="no shipped results for the testbed 'linear-21'"):
        challenge("linucb", "linear-21")
    with pytest.raises(FeelgoodError, match="seeds = 1 is not allowed: use 2 to"):
        challenge("linucb", "linear-20", seeds=1)
    with pytest.raises(FeelgoodError, match="unknown agent 'nobody'"):
        challenge("nobody", "linear-20")


def command(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "feelgood", "challenge", *arguments]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command_prints_the_challenger_beside_all_agents(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    done = command("mine.py", "--testbed", "wheel-0.99", "--seeds", "3", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for baseline in baselines_of("wheel-0.99"):
        assert baseline.agent in done.stdout
    assert "mine is better than" in done.stdout


def test_the_command_answers_a_file_without_agent_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    done = command("empty.py", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "feelgood: empty.py registers no agent: put @AGENTS.register('name') before its class."
    )
