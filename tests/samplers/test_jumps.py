"""Jumps between the modes that a feel-good bonus makes."""

import numpy as np
import pytest
from proofs.jump_laws import jump_checks
from proofs.levels import rejects, require

import feelgood
from feelgood import AGENTS, FeelgoodError
from feelgood.agents.thompson import Thompson
from feelgood.samplers.jump import JumpMALA


@pytest.mark.parametrize("which", ["far", pytest.param("near", marks=pytest.mark.slow)])
def test_jumps_find_every_mode(which: str) -> None:
    """From any of three modes, the shares of chains in each are those of the exact law."""
    require(jump_checks("jfgmalats", which))


@pytest.mark.slow
def test_without_jumps_chains_stay_in_their_mode() -> None:
    """What jumps are for: the same target, the same number of steps."""
    assert rejects(jump_checks("fgmalats"))


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
