"""Samplers along one history: the law, who follows it, and what the page says of them."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from showdown import arm_laws, world_histories, world_samplers
from showdown.arm_laws import ArmLaw
from showdown.book import Book
from showdown.shelf import Shelf

ROOT = Path(__file__).resolve().parents[1]
CHAINS = 256


def along(agent: str, off: float = 0.0, single: int = 33, heat: float = 1.0) -> list[ArmLaw]:
    """Ten stretches whose law is 0.05; the error is that of 30 independent draws per chain."""
    error = float(np.sqrt(0.05 * 0.95 / 30 / CHAINS))
    return [
        ArmLaw(agent, heat, 30 * i + 1, 30 * i + 30, 0.05, 0.05 + off, error, single, CHAINS)
        for i in range(10)
    ]


def part(rows: list[ArmLaw]) -> str:
    return world_histories.part(Book(Shelf([]), arm_laws=rows))


def test_who_follows_the_law_and_who_keeps_to_one_arm() -> None:
    rows = [*along("exact-fgts"), *along("jfgmalats", 0.002, 36), *along("fglmcts", 0.0, 240)]
    rows += along("fghmcts", -0.02, 250)
    text = part(rows)
    assert "- Not told apart from the law in any stretch: `jfgmalats`.\n" in text
    assert "but too many chains keep to one arm: `fglmcts`.\n" in text
    assert "Exact draws themselves" not in text
    assert "| *the law* | 5.0 | 5.0 | 5.0 | 5.0 |  |" in text
    assert "| `fghmcts` | **3.0** | **3.0** | **3.0** | **3.0** | **250** |" in text
    assert "| `jfgmalats` | 5.2 | 5.2 | 5.2 | 5.2 | 36 |" in text
    told = world_histories.summary(Book(Shelf([]), arm_laws=rows))
    assert told.startswith(
        "Given one history, 1 of 3 are not told apart from the exact law: `jfgmalats`."
    )


def test_exact_draws_that_are_off_are_said() -> None:
    assert "Exact draws themselves are off: `exact-fgts`." in part(along("exact-fgts", 0.05))


def test_chains_that_all_draw_alike_are_off() -> None:
    """No chain draws the worse arm: there is no spread to divide by."""
    frozen = [dataclasses.replace(r, share=0.0, error=0.0, single=CHAINS) for r in along("fglmcts")]
    text = part([*along("exact-fgts"), *frozen])
    assert "| `fglmcts` | **0.0** | **0.0** | **0.0** | **0.0** | **256** |" in text


def test_samplers_are_judged_at_their_own_temperature() -> None:
    hot = [dataclasses.replace(r, law=0.3, share=0.3, temperature=4.0) for r in along("exact-fgts")]
    rows = [*along("exact-fgts"), *hot]
    rows += [dataclasses.replace(r, agent="fgmalats", single=200) for r in hot]
    text = part(rows)
    assert "| `fgmalats` (temperature 4) | 30.0 | 30.0 | 30.0 | 30.0 | **200** |" in text
    assert text.count("*the law*") == 2


def test_without_a_file_nothing_is_said() -> None:
    book = Book(Shelf([]))
    assert world_histories.part(book) == world_histories.summary(book) == ""
    assert "Along one history" not in world_samplers.page(book)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert arm_laws.read(tmp_path) == []
    rows = [*along("exact-fgts"), *along("blackjax:nuts", heat=4.0)]
    arm_laws.write(tmp_path, rows)
    again = arm_laws.read(tmp_path)
    assert [r.agent for r in again] == [r.agent for r in rows]
    assert all(
        r.error == pytest.approx(s.error, rel=1e-5) for r, s in zip(again, rows, strict=True)
    )


def test_shares_are_means_over_chains() -> None:
    """Half of the chains play arm 1 always, half never: each keeps to one arm."""
    played = np.tile([0, 1], (arm_laws.STRETCHES * 3, 8))
    first = arm_laws.stretches("a", 1.0, played, np.linspace(0.0, 1.0, len(played)))[0]
    assert (first.first, first.last, first.single, first.chains) == (1, 3, 16, 16)
    assert first.share == 0.5 and first.error == pytest.approx(0.5164 / 4, rel=1e-3)
    assert first.law == pytest.approx(1.0 / 29)


def test_exact_draws_along_the_history_are_those_in_the_results() -> None:
    """The file is what the code gives; and the exact agent's draws have its probabilities."""
    again = list(arm_laws.measure(ROOT / "studies", lambda text: None, only=("exact-fgts",)))
    kept = [r for r in arm_laws.read(ROOT / "results") if r.agent == "exact-fgts"]
    assert len(again) == len(kept) == 2 * arm_laws.STRETCHES
    for one, other in zip(again, kept, strict=True):
        assert one.law == pytest.approx(other.law, rel=1e-3)
        assert one.share == pytest.approx(other.share, abs=0.02)
        # Twenty tests; five errors of a mean of 256 chains: wrong once in 100,000 runs.
        assert abs(one.share - one.law) < 5 * one.error


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["jfgmalats", "fgmalats"])
def test_jumps_follow_the_law_along_the_history_and_small_steps_do_not(agent: str) -> None:
    found = arm_laws.measure(ROOT / "studies", lambda text: None, only=("exact-fgts", agent))
    own = {f.label: f for f in world_histories.followers(list(found))}
    assert own[f"`{agent}`"].follows == (agent == "jfgmalats")
