"""A new sampler is one file: it registers itself, and all agents with it are there."""

from collections.abc import Iterator

import numpy as np
import pytest

import feelgood
from feelgood import AGENTS, FeelgoodError
from feelgood.agents.grammar import all_names
from feelgood.samplers import KERNELS
from feelgood.samplers.blocks import VARIANTS, register_kernel
from feelgood.samplers.lmc import LMC


@pytest.fixture
def half_steps() -> Iterator[type[LMC]]:
    """A kernel as its own file would define it."""

    @register_kernel("lmc", variant="half", meaning="half steps")
    class HalfSteps(LMC):
        """Langevin Monte Carlo with half the step."""

        title = "Langevin Monte Carlo with half the step"
        default_step = LMC.default_step / 2
        network_step = LMC.network_step / 2

    yield HalfSteps
    del KERNELS["half", "lmc"], VARIANTS["half"]


def test_the_name_is_known_with_every_bonus_and_as_a_network(half_steps: type[LMC]) -> None:
    assert "halffglmcts" in all_names() and "phalflmcts" in all_names()
    for name in ("halflmcts", "halffglmcts", "phalfsfglmcts", "neural-halflmcts"):
        assert type(AGENTS[name].build().kernel) is half_steps  # type: ignore[attr-defined]
    assert AGENTS["halflmcts"].settings["step"].default == LMC.default_step / 2
    assert AGENTS["neural-halflmcts"].settings["lr"].default == LMC.network_step / 2
    with pytest.raises(FeelgoodError, match="half steps go with lmc only, use 'halflmcts'"):
        AGENTS["halfhmcts"]


def test_it_is_the_kernel_that_its_file_says(half_steps: type[LMC]) -> None:
    """Half the step by default: the same chain as the plain kernel with that step."""
    del half_steps
    own = feelgood.run("linear-20", "halflmcts", rounds=40, seeds=2)
    plain = feelgood.run(
        "linear-20", "lmcts", rounds=40, seeds=2, settings={"lmcts": {"step": 0.25}}
    )
    np.testing.assert_array_equal(own[0].curve, plain[0].curve)


def test_without_its_file_the_name_is_unknown() -> None:
    with pytest.raises(FeelgoodError, match="unknown agent 'halflmcts'"):
        AGENTS["halflmcts"]
