"""Jumps between the modes that a feel-good bonus makes."""

import itertools

import numpy as np
import pytest
from grids import slow_but
from proofs.jump_laws import CASES, history_checks, jump_checks
from proofs.levels import rejects, require

import feelgood
from feelgood import AGENTS, FeelgoodError
from feelgood.agents.thompson import Thompson
from feelgood.samplers.jump import JumpMALA


@pytest.mark.parametrize("which", slow_but(["far"], CASES))
def test_jumps_find_every_mode(which: str) -> None:
    """From any mode, the shares of chains in each are those of the exact law.

    Of three arms with a coordinate each, of a linear trap, and of two copies of one.
    """
    require(jump_checks("jfgmalats", which))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["far", "trap", "copies"])
def test_without_jumps_chains_stay_in_their_mode(which: str) -> None:
    """What jumps are for: the same target, the same number of steps."""
    assert rejects(jump_checks("fgmalats", which))


@pytest.mark.parametrize(
    ("rounds", "start"), slow_but([(20, 1)], itertools.product((20, 100, 280), (0, 1)))
)
def test_along_one_history_jumps_follow_the_exact_agent(rounds: int, start: int) -> None:
    """Its probabilities after so many rounds of a linear trap, whichever arm chains start with."""
    require(history_checks("jfgmalats", rounds, [start]))


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [20, 100, 280])
def test_along_one_history_chains_without_jumps_do_not(rounds: int) -> None:
    """Those that start with the arm that the law calls worse."""
    assert rejects(history_checks("fgmalats", rounds, [1]))


@pytest.mark.slow
def test_without_a_bonus_it_is_mala() -> None:
    """λ = 0 is the plain agent, to the last bit."""
    none = {"jfgmalats": {"lam": 0.0}}
    jumping = feelgood.run("linear-20", "jfgmalats", rounds=40, seeds=2, settings=none)
    plain = feelgood.run("linear-20", "malats", rounds=40, seeds=2)
    np.testing.assert_array_equal(jumping[0].curve, plain[0].curve)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("jmalats", "without a bonus there are no modes to jump between, use 'malats'"),
        ("pjmalats", "without a bonus there are no modes to jump between, use 'pmalats'"),
        ("neural-jfgmalats", "need a linear model, use 'neural-fgmalats'"),
        ("jfglmcts", "jumps between arms' modes go with mala only, use 'jfgmalats'"),
    ],
)
def test_names_that_make_no_sense(name: str, remedy: str) -> None:
    with pytest.raises(FeelgoodError, match=remedy):
        AGENTS[name]


def test_jumps_need_a_bonus() -> None:
    with pytest.raises(FeelgoodError, match="and there is none: use MALA"):
        Thompson(kernel=JumpMALA())
