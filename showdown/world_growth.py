"""How plain Thompson sampling fails: its regret as the good arm gets rarer."""

from collections.abc import Sequence

import numpy as np

from feelgood.engine.results import AgentResult
from feelgood.stats.intervals import bca
from showdown.book import Book, items, section
from showdown.effects import estimate
from showdown.world_runs import FALLING, slope, worlds_of

STUDY = "worlds-traps"


def tables(book: Book) -> list[str]:
    """How fast regret grows as the good arm gets rarer, and what the mirrors cost."""
    runs = [r for r in book.shelf.of(STUDY) if r.agent == "exact-ts"]
    said = []
    for prefix, words, law in (
        (
            "trap-",
            "On `trap-P` its regret grows as P to the power",
            "Theory says −½. The most it can lose is √(T/P), and the share of this that it does "
            "lose grows as P falls, so that the fit is steeper.",
        ),
        (
            "superarm-",
            "On `superarm-M` it grows as e^(c·M), c =",
            "The prior mass of what is needed falls as e^(−0.131·M)/√M, so that the fit is "
            "steeper than 0.131.",
        ),
    ):
        own = [
            r for r in runs if r.testbed.startswith(prefix) and r.testbed_settings["world"] == "bad"
        ]
        if len(own) < 3:
            continue
        x = np.array([float(r.testbed.removeprefix(prefix)) for r in own])
        fit = slope(np.log(x) if prefix == "trap-" else x, [r.final_regret for r in own])
        said.append(
            f"{words} {_three(fit.value)} [{_three(fit.low)}, {_three(fit.high)}] "
            f"({len(own)} worlds, {len(own[0].seeds)} seeds). {law}"
        )
    if not said:
        return []
    said += _mirrored(book.shelf.of(STUDY))
    return [section("How plain Thompson sampling fails", items(said))]


def _mirrored(runs: Sequence[AgentResult]) -> list[str]:
    """The most that plain sampling and the bonus lose in the mirrors of these worlds."""
    pairs = [pair["mirror"] for pair in worlds_of(runs, FALLING).values() if "mirror" in pair]
    if not pairs:
        return []
    bold, plain = (
        max((bca(pair[i].final_regret) for pair in pairs), key=lambda e: e.value) for i in (0, 1)
    )
    return [
        f"In their {len(pairs)} mirrors plain sampling loses at most {estimate(plain)}, "
        f"λ_s = 1/√s at most {estimate(bold)}."
    ]


def _three(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
