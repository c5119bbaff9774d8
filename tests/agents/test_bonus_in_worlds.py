"""Every agent with a bonus plays the worlds that need one, finite classes by their relaxation."""

import itertools
from typing import Any

import numpy as np
import pytest
from grids import slow_but

from feelgood import AGENTS
from feelgood.agents.blackjax_bridge import LISTED_KERNELS
from feelgood.agents.grammar import all_names
from feelgood.core.testbed import TESTBEDS
from feelgood.engine.simulation import simulate

LINEAR = [name for name in all_names() if "lam" in AGENTS[name].settings]
NETWORKS = [name for name in AGENTS.names() if "neural" in name and "lam" in AGENTS[name].settings]
BLACKJAX = [f"blackjax:{kernel}" for kernel in LISTED_KERNELS]
#: By world: the prior and the noise that agents are told, and settings of the testbed.
WORLDS: dict[str, tuple[float, float, dict[str, Any]]] = {
    "linear-trap-4": (1.0, 1.0, {}),
    "sceptic-0.3": (0.3, 1.0, {}),
    "uneven-noise-4": (1.0, 1.0, {}),
    # In the bad world the first arm played confirms itself, with a bonus or without.
    "opposites": (1.0, 1.0, {"world": "mirror"}),
    # Of the finite classes the one with a normal relaxation: a trap's rare optimist has none.
    "superarm-6": (1.0, 0.5, {"relaxed": True}),
}
SMALL: dict[str, Any] = {"layers": "4", "updates": 2, "steps": 2}
#: Microcanonical steps need two dimensions, and BlackJAX says so; opposites have one.
IMPOSSIBLE = {("blackjax:mclmc", "opposites")}
EVERY = itertools.product([*LINEAR, *NETWORKS, *BLACKJAX], WORLDS)
CASES = [case for case in EVERY if case not in IMPOSSIBLE]
QUICK = [("neural-fglmcts", "linear-trap-4")]


def test_the_families_are_there() -> None:
    assert {"fglmcts", "psfghmcts", "jfgmalats"} <= set(LINEAR)
    assert {"neural-fglmcts", "neural-sfghmcts", "fg-neural-ts"} <= set(NETWORKS)


@pytest.mark.parametrize(("name", "world"), slow_but(QUICK, CASES))
def test_it_plays_and_the_bonus_counts(name: str, world: str) -> None:
    """Told noise and prior where it can be; draws with the bonus are others than without."""
    if name.startswith("blackjax:"):
        pytest.importorskip("blackjax")
    known = AGENTS[name].settings
    prior, noise, bed = WORLDS[world]
    told = {"noise": noise, "prior": prior, **SMALL}
    own = {key: value for key, value in told.items() if key in known}
    if "reg" in known:  # NeuralTS has the paper's words for these
        own = {key: value for key, value in own.items() if key not in ("noise", "prior")}
    with_it, without = (
        simulate(
            TESTBEDS[world].build(bed),
            AGENTS[name].build(own | {"lam": lam}),
            rounds=60,
            seeds=range(4),
        )
        for lam in (5.0, 0.0)
    )
    assert np.isfinite(with_it.final_regret).all() and (with_it.diverged_at < 0).all()
    assert not np.array_equal(with_it.arm_counts, without.arm_counts)
