"""The page of samplers in the worlds: what it says follows from made runs with known answers."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from test_showdown_worlds import even

from feelgood.engine.results import AgentResult
from showdown import world_runs, world_samplers, worlds
from showdown.book import Book
from showdown.keeping import Kept
from showdown.shelf import Shelf


def page(runs: Iterable[AgentResult], study: str = "worlds-samplers") -> str:
    return world_samplers.page(Book(Shelf([Kept(r, (study,)) for r in runs])))


def mixed(agent: str, alone: int, world: str = "bad", **own: Any) -> AgentResult:
    """So many of twenty seeds play the better arm alone; the others play both as often."""
    made = even(agent, 0.0, world)
    each = np.where(np.arange(20) < alone, 0.0, 2.0 * world_runs.arm_gap(made))
    return dataclasses.replace(
        made,
        final_regret=each,
        curve=np.outer(each, made.curve_rounds / 4),
        settings=made.settings | own,
    )


def both(agent: str, bad: int, mirror: int, **own: Any) -> list[AgentResult]:
    return [mixed(agent, bad, **own), mixed(agent, mirror, "mirror", **own)]


def test_a_sampler_that_plays_one_arm_stays_in_a_mode() -> None:
    """Four rounds with a gap of ½: a regret of 2 is the worse arm alone, one of 1 is both."""
    runs = [even("exact-fgts", 1.0), even("exact-ts", 2.0), even("jfgmalats", 1.0)]
    runs += [even("fglmcts", 2.0), even("fglmcts", 0.0, "mirror"), even("exact-fgts", 7, "mirror")]
    shelf = Shelf([Kept(r, ("worlds-samplers",)) for r in runs])
    part = worlds.page(Book(shelf))
    assert "1 of 2 samplers play [one arm alone](worlds-samplers.md)" in part
    text = world_samplers.page(Book(shelf))
    assert "- As the exact law does, play both arms: `jfgmalats`.\n" in text
    assert "In both worlds: `fglmcts`.\n" in text
    assert [world_runs.single(r) for r in runs[:3]] == [0, 20, 0]
    # Of the worse arm's plays the law has half, in both worlds.
    row = "| `fglmcts` | 2.00 [2.00, 2.00] | 20 / 20 | 0.00 [0.00, 0.00] | 0 / 20 | 50.0 / 50.0 |"
    assert row in text
    assert "| `jfgmalats` | 1.00 [1.00, 1.00] | 0 / 0 | – | – | 0.0 / – |" in text


def test_who_stays_is_judged_in_both_worlds_beside_the_law_of_its_temperature() -> None:
    """Thirteen of twenty are many beside one, and few beside fifteen."""
    hot = {"temperature": 4.0}
    runs = [*both("exact-fgts", 4, 0), *both("exact-ts", 18, 20), *both("jfgmalats", 3, 0)]
    runs += [*both("exact-fgts", 15, 1, **hot), *both("fgmalats", 13, 13, **hot)]
    runs += [*both("fglmcts", 16, 0), *both("fghmcts", 20, 20)]
    runs += both("many-fgmalats", 18, 2, chains=1, starts="fresh")
    text = page(runs)
    assert "In the mirror alone: `fgmalats` (temperature 4). In both worlds: `fghmcts`.\n" in text
    told = text.split("In the bad world alone: ")[1].split(".")[0]
    assert set(told.split(" and ")) == {"`fglmcts`", "`fgmalats` (fresh starts)"}
    assert "play both arms: `jfgmalats`.\n" in text
    more = [r for n in ("ufglmcts", "pfglmcts", "pfgmalats", "pfghmcts") for r in both(n, 20, 20)]
    assert "In both worlds: the 5 others.\n" in page([*runs, *more])


def test_fishers_test_is_one_sided_and_exact() -> None:
    """All of three against none of three: one of the twenty ways to choose them."""
    assert world_samplers._more(3, 3, 0, 3) == pytest.approx(1 / 20)
    assert world_samplers._more(0, 3, 3, 3) == pytest.approx(1.0)


def test_what_chance_alone_puts_between_two_runs_of_the_law() -> None:
    """Half of twenty seeds play the worse arm in half of the rounds: a share of 25 % ± 5.6 %.

    |N(0, 2s²)| has the mean 2s/√π and the quantile 1.96 √2 s. The bootstrap of 2,000 pairs is
    within 10 % of both, six errors of its mean.
    """
    mean, high = world_samplers.floor(mixed("exact-fgts", 10))
    error = 100 * 0.25 / np.sqrt(20)
    assert mean == pytest.approx(2 * error / np.sqrt(np.pi), rel=0.1)
    assert high == pytest.approx(1.96 * np.sqrt(2) * error, rel=0.1)
    others = [run for name in ("exact-ts", "jfgmalats", "fglmcts") for run in both(name, 18, 20)]
    text = page([*both("exact-fgts", 10, 20), *others])
    assert f"Chance alone gives about {mean:.2g} in the bad world and 0 in the mirror" in text
    assert f"(95 %: below {high:.2g} and 0)." in text


def test_those_that_hardly_explore_look_cheap_in_the_mirror() -> None:
    runs = [*both("exact-fgts", 0, 0), *both("exact-ts", 20, 20), *both("fghmcts", 20, 20)]
    runs += [even("fglmcts", 2.0), even("fglmcts", 0.0, "mirror")]
    text = page(runs)
    assert "In the mirror 2 of these 2 lose less than the law does, beyond the intervals." in text
    assert (
        "hardly explore, and in the bad world some seeds of 1 of them never find the good arm."
        in text
    )
    assert "hardly explore." in page(runs[:-2] + both("jfgmalats", 1, 1))


def test_several_chains_stand_beside_one() -> None:
    runs = [even("exact-fgts", 1.0), even("exact-ts", 2.0), even("fgmalats", 2.0)]
    for own, regret in (
        ({"chains": 4, "starts": "warm"}, 2.0),
        ({"chains": 16, "starts": "warm"}, 1.0),
        ({"chains": 1, "starts": "fresh"}, 0.0),
    ):
        made = even("many-fgmalats", regret)
        runs.append(dataclasses.replace(made, settings={**made.settings, **own}))
    text = page(runs, "worlds-chains")
    assert "| `fgmalats` (4 chains) | 2.00 [2.00, 2.00] | 20 / 20 | – | – | 50.0 / – |" in text
    assert "| `fgmalats` (16 chains) | 1.00 [1.00, 1.00] | 0 / 0 | – | – | 0.0 / – |" in text
    assert "| `fgmalats` (fresh starts) | 0.00 [0.00, 0.00] | 0 / 20 |" in text
    stay = "alone: `fgmalats` (fresh starts), `fgmalats` and `fgmalats` (4 chains).\n"
    assert stay in text and "play both arms: `fgmalats` (16 chains)." in text
    ends = "of 20: 20 with 4 chains and one chain; none with 16 chains or fresh starts."
    assert f"Seeds that end on the worse arm, {ends}" in text
    assert "This is not the law" not in text
    runs += [even("exact-fgts", 7.0, "mirror"), even("many-fgmalats", 0.0, "mirror")]
    mirror = {**runs[-1].settings, "chains": 16, "starts": "warm"}
    runs[-1] = dataclasses.replace(runs[-1], settings=mirror)
    assert "in the mirror 16 chains lose less, beyond" in page(runs, "worlds-chains")
