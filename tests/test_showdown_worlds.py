"""The page of the worlds: what it reads from runs, and sentences that follow from the numbers."""

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from made_results import result
from test_showdown_world_agents import ONE, SIXTEEN

from feelgood.engine.results import AgentResult
from showdown import (
    world_advice,
    world_frontier,
    world_runs,
    world_samplers,
    world_tables,
    worlds,
)
from showdown.book import Book
from showdown.keeping import Kept
from showdown.shelf import Shelf
from showdown.world_runs import (
    FALLING,
    MIRRORED,
    beaten_by,
    largest_regrets,
    on_frontier,
    points_of,
)
from showdown.yardsticks import Yardstick, key_of

NOISE = np.linspace(-0.5, 0.5, 20)


def run(agent: str, mean: float, testbed: str = "trap-0.25", **more: Any) -> AgentResult:
    """Twenty seeds around a mean; `world`, `gap`, `loss`, `prior`, `copies` are the testbed's."""
    told = {"noise": 1.0} | {
        name: more.pop(name) for name in ("world", "gap", "loss", "prior", "copies") if name in more
    }
    own = {"temperature": 1.0, "clip": 0.0} | more
    made = result(agent, mean + NOISE, testbed=testbed)
    return dataclasses.replace(made, settings=own, testbed_settings=told)


def both(agent: str, bad: float, mirror: float, **more: Any) -> list[AgentResult]:
    """In the bad world and in its mirror."""
    return [run(agent, bad, world="bad", **more), run(agent, mirror, world="mirror", **more)]


def bonus(bad: float, mirror: float, lam: float, schedule: str = "sqrt") -> list[AgentResult]:
    return both("exact-fgts", bad, mirror, lam=lam, lam_schedule=schedule)


FRONTIER = [
    *both("exact-ts", 100.0, 4.0),
    *both("exact-ts", 30.0, 20.0, temperature=4.0),
    *bonus(10.0, 30.0, 1.0),
    *bonus(40.0, 31.0, 0.1, "constant"),
]


def test_the_prior_of_a_trap_is_averaged_without_a_draw() -> None:
    plain = points_of(FRONTIER)[0]
    assert (plain.kind, plain.name) == ("plain", "plain")
    assert plain.bayes_mean == pytest.approx(0.25 * 100.0 + 0.75 * 4.0)


def test_worlds_that_are_drawn_give_their_own_average() -> None:
    drawn = [dataclasses.replace(r, testbed="superarm-40") for r in FRONTIER[:2]]
    assert points_of(drawn) == []
    prior = dataclasses.replace(run("exact-ts", 7.0, world="prior"), testbed="superarm-40")
    assert points_of([*drawn, prior])[0].bayes_mean == pytest.approx(7.0)


def test_the_frontier_and_who_is_beaten() -> None:
    """Averages are 28, 22.5, 25 and 33.25: the constant weight and plain Thompson sampling lose."""
    points = points_of(FRONTIER)
    assert [p.name for p in points] == ["plain", "temperature 4", "λ = 0.1", "λ_s = 1/√s"]
    assert [p.name for p in on_frontier(points)] == ["temperature 4", "λ_s = 1/√s"]
    constant = points[2]
    assert [p.name for p in beaten_by(constant, points)] == ["temperature 4", "λ_s = 1/√s"]
    least = largest_regrets(points)[0]
    assert (least.name, least.where) == ("temperature 4", "trap-0.25, bad")
    assert least.regret.value == pytest.approx(30.0)


def shelved(study: str, runs: list[AgentResult]) -> list[Kept]:
    return [Kept(r, (study,)) for r in runs]


def test_the_part_on_the_frontier_says_who_is_worst_where() -> None:
    book = Book(Shelf(shelved(world_runs.FRONTIER, FRONTIER)))
    chance = {
        key_of(r): Yardstick(*key_of(r)[:2], 4, 50.0 * (i + 1), 0.0, np.nan)
        for i, r in enumerate(FRONTIER[:2])
    }
    book.yardsticks = chance
    text = world_frontier.part(book)
    assert "Of 1 constant weights (1 in 1 worlds) 1 lose to some falling one both" in text
    assert "beyond uncorrected intervals. None is on a frontier." in text
    assert "| temperature 4 | 1 | 30.0 [29.9, 30.1] | trap-0.25, bad | 22.5 [22.4, 22.6] |" in text
    assert "| λ_s = 1/√s | 1 | 30.0 [29.9, 30.1] | trap-0.25, mirror | 25.0 [" in text
    assert "| plain | 0 | 100.0 [99.9, 100.1] | trap-0.25, bad | 28.0 [" in text
    assert "| chance |  | 100.0 | trap-0.25, mirror |  |" in text
    assert "| best fixed arm |  | 0.00 |  |  |" in text
    whole = world_tables.frontiers(book)
    assert "| temperature 4 | 30.0 [29.9, 30.1] | 20.0 [19.9, 20.1] | 22.5 [22.4, 22.6] |" in whole
    assert "| chance | 50.0 | 100.0 | – |" in whole
    assert "λ = 0.1" not in whole
    rows = world_frontier.rows(book)
    assert [row["on_the_frontier"] for row in rows] == ["no", "yes", "no", "yes"]
    assert rows[1]["bayes"] == pytest.approx(22.5)


def test_of_equals_the_first_is_on_the_frontier() -> None:
    """And who is as good in the bad world, but worse on average, is not."""
    small = bonus(100.0, 4.0, 0.01, "constant")
    worse = bonus(100.0, 9.0, 0.02, "constant")
    points = points_of([*FRONTIER[:2], *small, *worse])
    assert [p.name for p in on_frontier(points)] == ["plain"]


def test_copies_are_a_world_of_their_own() -> None:
    one = both("exact-ts", 1.0, 2.0, testbed="linear-trap-80", copies=1)
    four = both("exact-ts", 3.0, 4.0, testbed="linear-trap-80", copies=4)
    for made in (one, four):
        made.append(
            dataclasses.replace(
                made[0], testbed_settings=made[0].testbed_settings | {"world": "prior"}
            )
        )
    assert [p.testbed for p in points_of([*one, *four])] == [
        "linear-trap-80",
        "linear-trap-80, 4 copies",
    ]


def test_the_weights_of_theory_are_named_in_their_trap() -> None:
    """λ* = √(2 ln(1/P)/T) and λ_t = √(ln(1/P)/2t), P = 0.01 and T = 10,000."""
    own = {"lam": 1.0, "lam_schedule": "prior-mass", "prior_mass": 0.01, "horizon": 10_000.0}
    runs = [
        r
        for testbed in ("trap-0.01", "trap-0.0001")
        for r in (
            *both("exact-fgts", 1.0, 2.0, testbed=testbed, **own),
            *both("exact-fgts", 1.0, 2.0, testbed=testbed, lam=1.517427, lam_schedule="sqrt"),
        )
    ]
    assert [p.title for p in points_of(runs)] == [
        *("λ = 0.0303", "λ_s = 1.52/√s"),
        *("λ = 0.0303 (λ*)", "λ_s = 1.52/√s (λ_t)"),
    ]


def test_hot_runs_are_not_taken_for_plain_ones() -> None:
    pair = world_runs.worlds_of(FRONTIER, FALLING)["trap-0.25", 1.0, 1.0]["bad"]
    assert [r.settings["temperature"] for r in pair] == [1.0, 1.0]
    hot, plain = world_runs.heated_of(FRONTIER, 4.0)["trap-0.25", 1.0, 1.0]["mirror"]
    assert hot.final_regret.mean() == pytest.approx(20.0)
    assert plain.final_regret.mean() == pytest.approx(4.0)


def test_differences_are_those_of_the_other_pages() -> None:
    from showdown.effects import effect

    rng = np.random.default_rng(3)
    a = dataclasses.replace(FRONTIER[0], final_regret=rng.exponential(size=20))
    assert world_runs.difference(a, FRONTIER[1]) == effect("", a, FRONTIER[1]).difference
    later = dataclasses.replace(a, seeds=tuple(range(50, 70)))
    with pytest.raises(ValueError, match="no seed in common"):
        world_runs.difference(later, FRONTIER[1])


# What to do ----------------------------------------------------------------------------------


def linear(mean: float, **own: Any) -> AgentResult:
    own = {"lam": 0.0, "lam_schedule": "constant"} | own
    return dataclasses.replace(run("fglmcts", mean, "linear-20", **own), testbed_settings={})


def advice(hot: float, premium: float) -> str:
    """The recommendation if temperature 4 has this worst case, and the bonus this price."""
    runs = [r for r in FRONTIER if r.settings["temperature"] == 1.0]
    runs += both("exact-ts", hot, 20.0, temperature=4.0)
    crossed = [linear(60.0), linear(100.0, temperature=4.0)]
    boxed = [linear(60.0 + premium, **FALLING)]
    kept = shelved(world_runs.FRONTIER, runs) + shelved("question-temperature", crossed)
    kept += shelved("question-default", boxed) + shelved("worlds-many", [*ONE, *SIXTEEN])
    return world_advice.part(Book(Shelf(kept)))


def test_the_recommendation_follows_from_worst_cases_and_premiums() -> None:
    text = advice(hot=25.0, premium=3.0)
    assert (
        "**At worst** of 1 world, temperature 4 without a bonus loses 25.0 [24.9, 25.1], λ_s"
        in text
    )
    assert "λ_s = 1/√s 30.0 [29.9, 30.1]." in text
    assert "On linear-20 temperature 4 adds +40.0 [+40.0, +40.0] to 60.0. λ_s = 1/√s adds" in text
    assert "λ_s = 1/√s adds +3.00 [+3.00, +3.00] (20 seeds)." in text
    assert (
        "hotter: `temperature` 2 to 4. With linear rewards and many contexts **the bonus**" in text
    )
    assert "draw hotter" not in advice(hot=25.0, premium=50.0)
    safe = advice(hot=60.0, premium=3.0)
    assert "without a bonus loses 60.0 [59.9, 60.1]" in safe and "draw hotter" not in safe
    assert "draw hotter" in advice(hot=30.0, premium=3.0)


# Where the sign changes ----------------------------------------------------------------------


def swept(testbed: str, bad: float, drawn: float, **own: Any) -> list[AgentResult]:
    """Plain sampling has 50 everywhere, the bonus adds these numbers; 7 in the mirror."""
    made = []
    for world, extra in (("bad", bad), ("mirror", 7.0), ("prior", drawn)):
        made.append(run("exact-ts", 50.0, testbed, world=world, **own))
        made.append(run("exact-fgts", 50.0 + extra, testbed, world=world, **own, **FALLING))
    return made


def test_where_the_sign_changes_is_said_for_every_axis() -> None:
    runs = [*swept("linear-trap-20", 5.0, 6.0), *swept("linear-trap-40", -5.0, 6.0)]
    for prior, extra in ((0.5, -20.0), (1.0, -20.0), (2.0, 9.0)):
        runs += swept("linear-trap-80", extra, 10.0 / prior, prior=prior)
    loud = swept("linear-trap-80", -4.0, 8.0)
    runs += [
        dataclasses.replace(r, testbed_settings=r.testbed_settings | {"noise": 4.0}) for r in loud
    ]
    book = Book(Shelf(shelved("worlds-scaling", runs)))
    text = worlds.page(book)
    assert "| `linear-trap-20` | +5.00 [+5.00, +5.00] | +7.00 [+7.00, +7.00] | +6.00" in (
        world_tables.sweeps(book)
    )
    assert "it adds +5.00 [+5.00, +5.00] at d = 20, and −5.00 [−5.00, −5.00] at d = 40." in text
    assert "from round 1 and 1 on, with deviations 0.5 and 1." in text
    assert "**Noise** 4: −4.00 [−4.00, −4.00] in the bad world, but +8.00 [" in text
    assert "In the bad world it pays with a deviation up to 1 and costs from 2 on." in text
    assert "Under the prior it costs at every strength." in text
    assert "**In the mirrors** it costs everywhere, from +7.00 [" in text


def test_wrong_models_and_clipped_samplers_have_mirrors_and_heat() -> None:
    wrong = [*FRONTIER]
    clipped = [
        *both("exact-ts", 8.0, 9.0),
        *both("exact-ts", 140.0, 4.0, clip=0.05),
        *both("exact-ts", 11.0, 12.0, clip=0.05, temperature=4.0),
        *both("exact-fgts", 6.0, 54.0, clip=0.05, lam=0.01, lam_schedule="constant"),
        *both("exact-fgts", 1.0, 90.0, clip=0.05, **FALLING),
    ]
    kept = shelved("worlds-wrong-prior", wrong) + shelved("worlds-clipped", clipped)
    text = world_tables.sweeps(Book(Shelf(kept)))
    assert (
        "| `trap-0.25` | 100.0 / 4.00 | −90.0 [−90.0, −90.0] | +26.0 [+26.0, +26.0] "
        "| −70.0 [−70.0, −70.0] | +16.0 [+16.0, +16.0] |"
    ) in text
    assert "loses 140.0 [139.9, 140.1] instead of 8.00" in text
    assert "λ_s = 1/√s 1.00 [0.86, 1.14], temperature 4 11.0" in text
    assert "In the mirror it loses 4.00 [3.86, 4.14] instead of 9.00 [8.86, 9.14]. With" in text
    assert "With λ = 0.01, λ_s = 1/√s and temperature 4 that is 54.0 [" in text
    said = worlds.page(Book(Shelf(kept)))
    pays = "temperature 4 pays in 1 of 1 bad worlds and costs in 1 mirrors, λ_s = 1/√s in 1 and 1."
    assert pays in said


def test_traps_are_fitted_in_bad_worlds_and_reported_with_their_mirrors() -> None:
    runs = []
    for p in (0.1, 0.01, 0.001):
        runs += both("exact-ts", 10.0 * p**-0.5, 3.0 + p, testbed=f"trap-{p:g}")
        runs += both("exact-fgts", 20.0, 30.0 + p, testbed=f"trap-{p:g}", **FALLING)
    text = world_tables.sweeps(Book(Shelf(shelved("worlds-traps", runs))))
    assert re.search(r"to the power −0\.50\d \[", text) or "to the power −0.500 [" in text
    assert "In their 3 mirrors plain sampling loses at most 3.10 [" in text
    assert "λ_s = 1/√s at most 30.1 [" in text


def test_differences_within_the_intervals_beat_nobody() -> None:
    rng = np.random.default_rng(0)
    a, b = points_of([*both("exact-ts", 10.0, 10.0), *bonus(10.0, 10.0, 1.0)])
    near = dataclasses.replace(b, bad=a.bad - 0.05 + rng.normal(size=20), bayes=a.bayes - 1.0)
    assert beaten_by(a, [near]) == []


def test_the_price_of_a_run() -> None:
    made = run("exact-fgts", 8.0, lam=0.1, lam_schedule="constant", gap=0.2, loss=0.8)
    assert world_runs.price(made) == pytest.approx(2 * 0.1 * 0.2 * 0.8)
    # The curve is straight: a quarter of the regret per round, from any round on.
    np.testing.assert_allclose(world_runs.late_rates(made, 2), made.final_regret / 4)


def test_a_power_law_has_its_power() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0])
    fit = world_runs.slope(x, [np.exp(0.3 * at) * (1.0 + 0.1 * NOISE) for at in x])
    assert fit.low < 0.3 < fit.high
    assert fit.high - fit.low < 0.05


def test_from_where_a_run_is_ahead() -> None:
    early, late = run("exact-fgts", 8.0), run("exact-ts", 8.0)
    crossed = dataclasses.replace(late, curve=early.curve + np.array([-1.0, 1.0, 2.0]))
    assert world_runs.ahead_from(early, crossed) == 2
    assert world_runs.ahead_from(crossed, early) is None


def test_shares_of_the_worse_arm() -> None:
    """A regret of 1 after 4 rounds with a gap of ½: half of the plays."""
    made = dataclasses.replace(run("exact-ts", 1.0), final_regret=np.ones(20))
    made = dataclasses.replace(made, curve=np.outer(np.ones(20), made.curve_rounds / 4))
    rounds, shares = world_runs.shares(made)
    assert rounds[-1] == 4
    np.testing.assert_allclose(shares, 0.5)


def even(agent: str, regret: float, world: str = "bad") -> AgentResult:
    """Twenty seeds with a straight curve on a linear trap of 16 coordinates."""
    made = result(agent, np.full(20, float(regret)), testbed="linear-trap-16")
    own = {"temperature": 1.0} | ({} if agent == "exact-ts" else FALLING)
    return dataclasses.replace(made, settings=own, testbed_settings={"world": world, "noise": 1.0})


def test_the_mirror_of_a_linear_trap_has_its_own_gap() -> None:
    """−√d/2 beside √d/2 − ½."""
    assert world_runs.arm_gap(even("exact-ts", 1.0)) == 0.5
    assert world_runs.arm_gap(even("exact-ts", 1.0, "mirror")) == 3.5
    assert world_runs.stuck(even("exact-ts", 7.5, "mirror")) == 20
    assert world_runs.stuck(even("exact-ts", 6.5, "mirror")) == 0


def test_where_the_schedule_was_run_elsewhere_it_is_said() -> None:
    def other(agent: str, testbed: str, mean: float, **own: Any) -> AgentResult:
        return dataclasses.replace(run(agent, mean, testbed, **own), testbed_settings={})

    def pages(runs: list[AgentResult]) -> tuple[str, str]:
        book = Book(Shelf(shelved("table-neural", runs)))
        return worlds.page(book), world_tables.sweeps(book)

    falls = other("neural-fglmcts", "adult", 30.0, b=10.0, **FALLING)
    runs = [falls, other("neural-lmcts", "adult", 20.0)]
    text, table = pages(runs)
    assert "| `adult` | `neural-fglmcts` | 20.0 | +10.0 [+10.0, +10.0] | 20 |" in table
    assert "[Elsewhere](worlds-sweeps.md#elsewhere), 1 problems and [wheels]" in text
    assert "units: no gain is shown, a loss on adult." in text
    assert "**Not run**: this schedule in logistic bandits." in text
    none = other("fglmcts", "logistic-20", 20.0, lam=0.0, lam_schedule="constant")
    runs += [none, other("fglmcts", "logistic-20", 20.0, **FALLING)]
    text, table = pages(runs)
    assert "| `logistic-20` | `fglmcts` | 20.0 | 0.00 [" in table and "**Not run**" not in text
    assert "units: no gain is shown, a loss on adult." in text
    runs[-1] = other("fglmcts", "logistic-20", 19.0, **FALLING)
    assert "a gain on logistic-20 is shown, a loss on adult." in pages(runs)[0]
    few = [dataclasses.replace(r, seeds=tuple(range(i, i + 20))) for i, r in enumerate(runs[:2])]
    assert "adult" not in "".join(pages(few))
    beta = [linear(60.0), dataclasses.replace(linear(50.0, **FALLING))]
    kept = shelved("question-lambda", beta[:1]) + shelved("worlds-schedule", beta[1:])
    table = world_tables.sweeps(Book(Shelf(kept)))
    assert "| `linear-20`, preset `beta-1` | `fglmcts` | 60.0 | −10.0 [" in table


def test_without_runs_nothing_is_claimed() -> None:
    book = Book(Shelf([]))
    text = worlds.page(book)
    assert text.count(worlds.NOT_RUN) == 4
    assert world_samplers.NOT_RUN in world_samplers.page(book)
    assert book.figures == {}
    assert not re.search(r"\d %.*interval.*\[", text)


def test_other_pages_on_the_bonus_are_summed_up_with_links() -> None:
    from test_showdown_stuck import halfway, networks, temperatures

    cold = temperatures(lambda heat, lam: 30 if heat < 1 and lam == 0 else 2)
    own = networks(soft=17)
    book = Book(Shelf(shelved("question-temperature", cold) + shelved("question-stuck", own)))
    book.yardsticks = halfway(cold) | halfway(own, 400.0, 900.0)
    (text,) = world_advice.elsewhere(book)
    assert "It frees stuck seeds in 12 of 12 settings; in 0 more count as stuck" in text
    assert "too few" not in text
    assert "it binds seeds to a wrong arm in 6 of 6 settings and frees some in 0:" in text
    assert "(bonus-temperature.md)" in text and "(stuck-networks.md)" in text
    assert world_advice.elsewhere(Book(Shelf([]))) == []


# docs/worlds.md ------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[1]
CONSTANT = {"lam_schedule": "constant"}


def told_settings(testbed: str, agent: str) -> dict[str, Any]:
    """What a row of the table calls an agent, as settings."""
    mass = float(testbed.removeprefix("trap-")) if testbed.startswith("trap-") else 0.5
    known: dict[str, dict[str, Any]] = {
        "plain": {},
        "`clip = 0.05`": {"clip": 0.05},
        "`clip = 0.05`, λ = 0.01": CONSTANT | {"clip": 0.05, "lam": 0.01},
        "temperature 80": {"temperature": 80.0},
        "λ*": {"lam_schedule": "prior-mass", "prior_mass": mass},
        "λ_t": {"lam_schedule": "sqrt", "lam": round(math.sqrt(-math.log(mass) / 2), 6)},
        "λ = 0.01": CONSTANT | {"lam": 0.01},
        "λ = 0.1": CONSTANT | {"lam": 0.1},
        "λ_t = t^(−1/2)": FALLING,
    }
    return {"temperature": 1.0, "clip": 0.0} | known[agent]


def kept_regrets(testbed: str, agent: str, world: str) -> np.ndarray:
    """Of all seeds of such a run in `results/`."""
    own = told_settings(testbed, agent)
    name = "exact-fgts" if "lam_schedule" in own else "exact-ts"
    settings = {"world": world} | ({"gap": 0.5} if testbed == "trap-0.5" else {})
    settings |= {"copies": 1, "prior": 1.0, "noise": 1.0} if "linear" in testbed else {}
    columns = ["agent", "rounds", "settings", "testbed_settings", "final_regret"]
    rows = pq.read_table(ROOT / "results" / f"{testbed}.parquet", columns=columns).to_pylist()
    return np.array(
        [
            row["final_regret"]
            for row in rows
            if (row["agent"], row["rounds"]) == (name, 10_000)
            and own.items() <= json.loads(row["settings"]).items()
            and settings.items() <= json.loads(row["testbed_settings"]).items()
        ]
    )


def told_regrets() -> list[tuple[str, str, str, str]]:
    """World, agent, which world, and what the page says."""
    text = (ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
    table = text[text.index("## What they get") :].split("\n## ")[0]
    found, testbed = [], ""
    for line in re.findall(r"^\| .*", table, re.MULTILINE)[1:]:
        first, agent, *numbers = (cell.strip() for cell in line.strip().strip("|").split("|"))
        testbed = re.sub(r"`([^`]+)`.*", r"\1", first) or testbed
        found += [(testbed, agent, w, n) for w, n in zip(MIRRORED, numbers, strict=True)]
    return found


def test_the_page_of_the_worlds_has_at_least_forty_numbers() -> None:
    assert len(told_regrets()) == 40


@pytest.mark.parametrize(("testbed", "agent", "world", "said"), told_regrets())
def test_what_the_page_of_the_worlds_says_is_in_the_results(
    testbed: str, agent: str, world: str, said: str
) -> None:
    """Within 4 errors of both means, 6e-5 each, and half of the last digit.

    Where a few seeds are stuck, all of the mean comes from them, so that the spread is at least
    that of a Poisson law of such seeds.
    """
    regrets = kept_regrets(testbed, agent, world)
    assert len(regrets) >= 100
    number, _, _ = said.partition(" ± ")
    value = float(number.replace(",", ""))
    spread = float(regrets.std(ddof=1))
    if testbed == "trap-0.5":
        spread = max(spread, math.sqrt(0.5 * 10_000 * value))
    error = spread * math.sqrt(1 / len(regrets) + 1 / 400)
    digit = 0.1 if "." in number else 1.0
    assert abs(value - regrets.mean()) <= 4 * error + digit / 2
