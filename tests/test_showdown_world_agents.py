"""What the bonus adds to each agent; who insures better with many arms or contexts."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from made_results import result

from feelgood.engine.results import AgentResult
from showdown import world_advice, world_agents, world_many
from showdown.book import Book
from showdown.keeping import Kept
from showdown.shelf import Shelf
from showdown.world_runs import FALLING
from showdown.yardsticks import Yardstick, key_of


def book(runs: list[AgentResult], study: str) -> Book:
    return Book(Shelf([Kept(r, (study,)) for r in runs]))


def wrong(agent: str, regret: float, testbed: str = "opposites", world: str = "bad") -> AgentResult:
    """Twenty seeds around a mean."""
    made = result(agent, regret + np.linspace(-1.0, 1.0, 20), testbed=testbed, rounds=2000)
    return dataclasses.replace(made, testbed_settings={"world": world})


def test_agents_stand_beside_themselves_without_the_bonus() -> None:
    """Seeds are common, so differences of shifted runs have no spread."""
    runs = [wrong("exact-ts", 9.0), wrong("malats", 10.0)]
    runs += [wrong("fgmalats", 5.0), wrong("jfgmalats", 10.0)]
    runs += [wrong("malats", 3.0, world="mirror"), wrong("fgmalats", 4.0, world="mirror")]
    runs += [wrong("exact-fgts", 7.0, "sceptic-0.1")]
    made = book(runs, "worlds-mcmc")
    made.yardsticks = {key_of(runs[0]): Yardstick(*key_of(runs[0])[:2], 4, 500.0, 0.0, np.nan)}
    text = world_agents.page(made)
    assert "| bonus added by | opposites |" in text
    assert "| *`exact-ts` loses* | 9.00 |" in text and "| *chance loses* | 500.0 |" in text
    assert "| `fgmalats` | **−5.00 [−5.00, −5.00]** |" in text
    assert "| `fgmalats` | **+1.00 [+1.00, +1.00]** |" in text
    assert re.search(r"\| `jfgmalats` \| 0.00 \[", text)
    assert "`exact-fgts`" not in text and "over all 3 pairs" in text
    first, *_ = world_agents.rows(made)
    assert (first["agent"], first["with_mean"], first["without_median"]) == ("fgmalats", 5.0, 10.0)
    assert (first["adds"], first["seeds"], first["by_holms_rule"]) == (-5.0, 20, "yes")
    said = "in the bad worlds in 1 and 0 of 2 pairs, in the mirrors in 0 and 1 of 1 pairs."
    assert f"The bonus lowers and raises regret {said}" in text
    assert world_agents.NOT_RUN in world_agents.page(Book(Shelf([])))


def test_a_few_pairs_of_many_are_not_shown_by_chance() -> None:
    """A difference with a raw p of about 0.03 is not bold among eleven."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(20)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    plain = {name: wrong(name, 10.0) for name in set(world_agents.PLAIN.values())}
    runs = [*plain.values()]
    for name, other in world_agents.PLAIN.items():
        shifted = plain[other].final_regret + noise + 2.3 / np.sqrt(20.0)
        runs.append(dataclasses.replace(wrong(name, 0.0), final_regret=shifted))
    own = {(r.agent, r.testbed, "bad"): r for r in runs}
    changed = world_agents.changes(own)
    assert len(changed) == len(world_agents.PLAIN)
    assert all(0.005 < change.p < 0.05 for change, _ in changed.values())
    assert not any(shown for _, shown in changed.values())
    alone = ("fgmalats", "opposites", "bad"), ("malats", "opposites", "bad")
    assert world_agents.changes({key: own[key] for key in alone})[alone[0]][1]


# ---- more arms, more contexts -------------------------------------------------------------------


def many(bads: dict[str, float], priors: dict[str, float], **told: Any) -> list[AgentResult]:
    """Plain sampling, temperature 2 and the falling bonus in one kind of world."""
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "heat": {"temperature": 2.0},
        "bonus": dict(FALLING),
    }
    runs = []
    for name, own in settings.items():
        agent = "exact-fgts" if name == "bonus" else "exact-ts"
        for world, mean in (("bad", bads[name]), ("mirror", 1.0), ("prior", priors[name])):
            made = result(agent, mean + np.linspace(-1.0, 1.0, 20), testbed="linear-trap-16")
            settled = {"temperature": 1.0} | own
            beds = {"world": world, "prior": 0.5, "noise": 1.0, "copies": 1} | told
            runs.append(dataclasses.replace(made, settings=settled, testbed_settings=beds))
    return runs


ONE = many({"plain": 90, "heat": 20, "bonus": 40}, {"plain": 10, "heat": 20, "bonus": 30})
BUSY = {"plain": 90.0, "heat": 20.0, "bonus": 40.0}
SIXTEEN = many(BUSY, {"plain": 10, "heat": 30, "bonus": 12}, copies=16)


def test_what_both_insurances_do_with_few_and_many_contexts() -> None:
    both = book([*ONE, *SIXTEEN], "worlds-many")
    assert world_many.decided(both)
    (told,) = world_many.said(both)
    assert "**[With 16 contexts]" in told
    assert "the bad world costs plain 90.0, temperature 2 20.0 and λ_s = 1/√s 40.0." in told
    assert "temperature 2 adds +20.0 [+20.0, +20.0], with 1 context +10.0 [" in told
    assert "λ_s = 1/√s adds +2.00 [+2.00, +2.00], with 1 context +20.0 [" in told
    text = world_many.page(both)
    assert "- On the frontier of linear-trap-16: plain sampling, temperature 2.\n" in text
    assert "linear-trap-16, 16 copies: plain sampling, λ_s = 1/√s and temperature 2.\n" in text
    row = r"16 copies` \| \*\*temperature 2\*\* \| 20.0 \[\S+ \S+\] \| 1.00 \["
    assert re.search(row, text) and "| `linear-trap-16` | λ_s = 1/√s | 40.0" in text
    assert "linear-trap-16 has the prior 0.5." in text


@pytest.mark.parametrize(
    ("bads", "priors"),
    [
        (BUSY, {"plain": 10, "heat": 11, "bonus": 12}),
        ({"plain": 90.0, "heat": 40.0, "bonus": 20.0}, {"plain": 10, "heat": 30, "bonus": 12}),
    ],
)
def test_an_insurance_that_is_better_in_both_decides_nothing(
    bads: dict[str, float], priors: dict[str, float]
) -> None:
    made = book([*ONE, *many(bads, priors, copies=16)], "worlds-many")
    assert not world_many.decided(made)
    assert "many contexts" not in world_advice.part(made)


def test_without_worlds_of_many_contexts_nothing_is_decided() -> None:
    assert not world_many.decided(book(ONE, "worlds-many"))
    empty = Book(Shelf([]))
    assert world_many.said(empty) == [] and world_many.NOT_RUN in world_many.page(empty)
    assert not world_many.decided(empty)


# ---- wider laws ---------------------------------------------------------------------------------


def trapped(agent: str, locked: int, seeds: int = 20) -> AgentResult:
    """So many first seeds play the worse arm alone: a gap of ½ over 100 rounds."""
    lost = np.where(np.arange(seeds) < locked, 50.0, 1.0 + 0.01 * np.arange(seeds))
    made = result(agent, lost, testbed="linear-trap-16", rounds=100)
    return dataclasses.replace(made, testbed_settings={"world": "bad", "noise": 1.0})


def test_locked_seeds_of_wider_laws_stand_beside_those_of_filters() -> None:
    """Nine seeds are locked by the filter alone: p = 2/2⁹."""
    runs = [trapped("lmcts", 1), trapped("malats", 10), trapped("fglmcts", 3)]
    assert "Metropolis" not in world_agents.page(book(runs, "worlds-mcmc-trap"))
    runs.append(trapped("fgmalats", 3))
    text = world_agents.page(book(runs, "worlds-mcmc-trap"))
    assert "`lmcts` 1 and `malats` 10 of 20 (p = 0.0039). `fglmcts` 3" in text
    assert "3 of 20 (p = 1)." in text


def test_agents_with_fewer_seeds_are_named() -> None:
    runs = [trapped("malats", 1, 30), trapped("fgmalats", 1, 30), trapped("jfgmalats", 1)]
    text = world_agents.page(book(runs, "worlds-mcmc-trap"))
    assert "30 seeds (20 of `jfgmalats`)." in text
    assert "(20 of" not in world_agents.page(book(runs[:2], "worlds-mcmc-trap"))
