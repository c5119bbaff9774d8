"""New runs have the law of the committed results.

`results/` was made by earlier code. Agents of every kind run again with the committed settings and
with 100 seeds that no committed row has, so that the two samples of regrets are independent.

Each pair of samples is compared twice. The test of Mann and Whitney finds a shift of the regrets.
That of Kolmogorov and Smirnov finds a change of their spread or shape. Both are exact for every
continuous law. Welch's test is not: some regrets have tails too heavy for it at so small a level.

All comparisons together fail by chance with probability at most `FAMILY`. By Bonferroni's
inequality each is made at `FAMILY` over their number, however the agents depend on each other.

With 30 committed seeds a shift of one standard deviation is found with a probability of about 0.7.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

import feelgood
from feelgood.engine.results import AgentResult
from showdown import keeping

FAMILY = 1e-3
TESTBED = "linear-20"
FRESH = range(1_000, 1_100)
#: Rounds of agents that go through their history: a round that the committed curves have.
EARLY = 1_072


@dataclasses.dataclass(frozen=True)
class Committed:
    """Rows of `results/`: those of an agent that a study asks for, with these settings."""

    agent: str
    study: str
    rounds: int = 10_000
    having: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.agent


DEFAULT, PRECONDITIONED, MAIN = "question-default", "question-preconditioning", "table-main"
STRONG_BONUS = (("beta", 1.0), ("lam", 0.5))

CASES = (
    # in closed form
    Committed("epsgreedy", DEFAULT),
    Committed("lints", DEFAULT),
    Committed("linucb", DEFAULT),
    # without and with Metropolis's correction, and preconditioned
    Committed("lmcts", DEFAULT),
    Committed("svrglmcts", DEFAULT),
    Committed("ulmcts", DEFAULT),
    Committed("malats", DEFAULT),
    Committed("hmcts", DEFAULT),
    Committed("plmcts", PRECONDITIONED),
    Committed("pmalats", PRECONDITIONED),
    Committed("phmcts", PRECONDITIONED),
    # the same with a bonus; the smooth one has a cap that binds, or it would be the hard one
    Committed("fglmcts", MAIN, EARLY, STRONG_BONUS),
    Committed("sfglmcts", "question-smoothing", EARLY, (("b", 1.0), ("lam", 0.5), ("s", 1.0))),
    Committed("fgmalats", MAIN, EARLY, STRONG_BONUS),
    Committed("fghmcts", MAIN, EARLY, STRONG_BONUS),
    Committed("pfglmcts", MAIN, EARLY),
    Committed("pfgmalats", PRECONDITIONED, EARLY),
)
LEVEL = FAMILY / (2 * len(CASES))


@pytest.fixture(scope="module")
def kept() -> list[keeping.Kept]:
    folder = Path(__file__).resolve().parents[1] / "results"
    return keeping.read(folder, TESTBED)


def find(kept: list[keeping.Kept], case: Committed) -> AgentResult:
    """The one result that a case names."""
    (found,) = (
        one.result
        for one in kept
        if one.result.agent == case.agent
        and case.study in one.studies
        and all(one.result.settings[name] == value for name, value in case.having)
    )
    return found


def run_again(
    committed: AgentResult, seeds: range, rounds: int, changes: Mapping[str, Any] | None = None
) -> np.ndarray:
    """Regrets of new runs with the committed settings, but for the changes."""
    settings = {
        committed.agent: {**committed.settings, **(changes or {})},
        "testbed": dict(committed.testbed_settings),
    }
    result = feelgood.run(TESTBED, committed.agent, rounds=rounds, seeds=seeds, settings=settings)
    return result[committed.agent].final_regret


def regrets_at(committed: AgentResult, rounds: int) -> np.ndarray:
    """Committed regrets after so many rounds; those before the last round have four digits."""
    if rounds == committed.rounds:
        return committed.final_regret
    (place,) = np.flatnonzero(committed.curve_rounds == rounds)
    return committed.curve[:, place]


def p_values(new: np.ndarray, old: np.ndarray) -> dict[str, float]:
    """Of the hypothesis that both samples have one law."""
    assert np.isfinite(new).all() and np.isfinite(old).all(), "a chain diverged"
    # Values tie within the rounded sample only, which leaves both statistics as they are.
    return {
        "Mann-Whitney": float(stats.mannwhitneyu(new, old, method="exact").pvalue),
        "Kolmogorov-Smirnov": float(stats.ks_2samp(new, old, method="exact").pvalue),
    }


def test_enough_is_compared(kept: list[keeping.Kept]) -> None:
    """Every case names one result, of 30 seeds or more, none of which runs again."""
    assert len({case.agent for case in CASES}) == len(CASES) >= 12
    assert len(FRESH) >= 100
    for case in CASES:
        committed = find(kept, case)
        assert len(regrets_at(committed, case.rounds)) >= 30, case.agent
        assert not set(committed.seeds) & set(FRESH), case.agent


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the rows were made on a CPU")
@pytest.mark.parametrize("agent", ["lints", "linucb"])
def test_committed_seeds_run_again_as_they_were(kept: list[keeping.Kept], agent: str) -> None:
    """Every arm is the same: regrets differ by the rounding of another release of JAX at most."""
    committed = find(kept, Committed(agent, DEFAULT))
    new = run_again(committed, range(3), committed.rounds)
    np.testing.assert_allclose(new, committed.final_regret[:3], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_new_runs_have_the_committed_law(kept: list[keeping.Kept], case: Committed) -> None:
    committed = find(kept, case)
    new, old = run_again(committed, FRESH, case.rounds), regrets_at(committed, case.rounds)
    found = p_values(new, old)
    told = f"{new.mean():.1f} ± {new.std(ddof=1):.1f} now, {old.mean():.1f} ± {old.std(ddof=1):.1f}"
    print(f"{case.agent}: {told} committed; {found}")
    assert min(found.values()) > LEVEL, f"{told} committed; {found}, level {LEVEL:.1e}"


WRONG = {"lints": {"eta": 2.0}, "lmcts": {"eta": 2.0}, "fglmcts": {"lam": 0.0}}


@pytest.mark.slow
@pytest.mark.parametrize("agent", WRONG)
def test_a_wrong_agent_is_noticed(kept: list[keeping.Kept], agent: str) -> None:
    """The data count twice, or the bonus is lost."""
    (case,) = (case for case in CASES if case.agent == agent)
    committed = find(kept, case)
    new = run_again(committed, FRESH, case.rounds, WRONG[agent])
    found = p_values(new, regrets_at(committed, case.rounds))
    print(f"{agent} with {WRONG[agent]}: {found}")
    assert min(found.values()) <= LEVEL
