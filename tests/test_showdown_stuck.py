"""Pages on stuck seeds: what they say follows from made results with known answers."""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_results import result
from test_readme import sentences

from feelgood.engine.results import AgentResult
from showdown import later_settings, yardsticks
from showdown.asking import Asked
from showdown.book import Book
from showdown.keeping import Kept
from showdown.question import page
from showdown.questions import bonus_temperature, stuck_networks
from showdown.shelf import Shelf
from showdown.stuck_seeds import Beside, beside, together
from showdown.yardsticks import Yardstick

SEEDS = 100
RESULTS = Path(__file__).resolve().parents[1] / "results"
COLUMNS = ["studies", "seed", "simple_regret"]
HEATS = (0.04, 0.25, 0.37, 0.5, 1.0, 2.0, 4.0, 368.0)
WEIGHTS = (("constant", 0.0), ("constant", 0.1), ("constant", 0.5), ("sqrt", 1.0))


def run(agent: str, stuck: int, testbed: str, **settings: Any) -> AgentResult:
    """Of a hundred seeds the first so many are stuck: they lose 300 at the end, the others 1.

    All lose 5 more in the 500 rounds before these.
    """
    lost = np.where(np.arange(SEEDS) < stuck, 300.0, 1.0 + 0.001 * np.arange(SEEDS))
    made = result(agent, 50.0 + 10 * lost, testbed=testbed, rounds=2000)
    before = lost + 5.0 + 0.02 * (np.arange(SEEDS) % 2)
    ends = [made.final_regret - lost - before, made.final_regret - lost, made.final_regret]
    curves = {"curve_rounds": np.array([1000, 1500, 2000]), "curve": np.stack(ends, axis=1)}
    return dataclasses.replace(made, settings=settings, simple_regret=lost, **curves)


def halfway(
    runs: Iterable[AgentResult], learner: float = math.nan, fixed: float = 480.0
) -> dict[Any, Yardstick]:
    """Yardsticks of the testbeds of these runs: seeds that lose 175 or more are stuck."""
    least = 0.0 if math.isnan(learner) else learner
    keys = {yardsticks.key_of(r) for r in runs}
    return {key: Yardstick(*key, 1400.0 - least, fixed, learner) for key in keys}


def book_of(study: str, runs: Iterable[AgentResult], **parts: Any) -> Book:
    return Book(Shelf([Kept(r, (study,)) for r in runs]), **parts)


# ---- the test of two shares -------------------------------------------------------------------


def test_the_exact_test_is_that_of_a_fair_coin() -> None:
    """Ten seeds differ, nine of them are freed: two tails of a binomial law."""
    base, changed = run("a", 10, "adult"), run("b", 0, "adult")
    changed.simple_regret[[0, 50]] = 300.0
    (found,) = beside("x", changed, base, lambda r: 100.0)
    assert (found.freed, found.bound, found.seeds) == (9, 1, SEEDS)
    assert (found.before, found.after) == (10, 2)
    assert found.p == pytest.approx(2 * (1 + 10) / 2**10)


def test_a_chain_that_diverged_is_stuck_and_missing_runs_are_passed_over() -> None:
    base, changed = run("a", 0, "adult"), run("b", 0, "adult")
    changed.simple_regret[3] = math.nan
    assert [b.bound for b in beside("x", changed, base, lambda r: 100.0)] == [1]
    assert (
        beside("x", None, base, lambda r: 1.0) == beside("x", changed, base, lambda r: None) == []
    )


def test_verdicts_are_corrected_for_their_number_and_few_seeds_have_none() -> None:
    """p = 2/2⁷ for seven freed seeds: seen alone, not among five such tests."""
    base = run("a", 7, "adult")
    (one,) = beside("x", run("b", 0, "adult"), base, lambda r: 100.0)
    assert together([one])[0].frees and not any(b.frees for b in together([one] * 5))
    assert together([dataclasses.replace(one, seeds=19)]) == []
    assert not dataclasses.replace(one, seeds=19, holm=0.0).frees


# ---- bonus × temperature ----------------------------------------------------------------------


def temperatures(stuck: Any, testbeds: tuple[str, ...] = ("linear-20",)) -> list[AgentResult]:
    """`stuck` says how many seeds are, from temperature and weight."""
    return [
        run("fglmcts", stuck(heat, lam), testbed, temperature=heat, lam=lam, lam_schedule=schedule)
        for testbed, heat, (schedule, lam) in itertools.product(testbeds, HEATS, WEIGHTS)
    ]


def heated(runs: list[AgentResult], **parts: Any) -> str:
    book = book_of("question-temperature", runs, yardsticks=halfway(runs), **parts)
    return page(book, bonus_temperature.QUESTION)


@pytest.mark.parametrize(
    ("stuck", "said"),
    [
        (lambda heat, lam: 30 if heat < 1 and lam == 0 else 2, "So it frees cold agents."),
        (
            lambda heat, lam: 30 if heat < 1 and lam > 0 else 2,
            "more of them count as stuck with it.",
        ),
        (lambda heat, lam: 20 if heat < 1 else 0, "no such effect is shown."),
        (
            lambda heat, lam: 0 if heat >= 1 else (5, 35)[(lam == 0) == (heat < 0.3)],
            "its effect depends on weight and temperature.",
        ),
        (
            lambda heat, lam: 40 if heat > 1 else 0,
            "at most 0 of 100 are stuck: too few to free any",
        ),
    ],
)
def test_whether_cold_agents_are_freed(stuck: Any, said: str) -> None:
    text = heated(temperatures(stuck))
    assert said in text
    verdicts = ("it frees cold", "count as stuck with it", "no such", "its effect depends")
    assert len([v for v in verdicts if v in text]) == 1


def test_stuck_is_what_the_yardsticks_say() -> None:
    """All seeds lose alike: none stands out among its own, and all are stuck or none."""
    runs = temperatures(lambda heat, lam: 100 if lam == 0.5 else 0)
    book = book_of("question-temperature", runs, yardsticks=halfway(runs))
    cold = bonus_temperature.stuck(book)[bonus_temperature.COLD]
    assert {(b.label.split(",")[0], b.before, b.after) for b in cold} == {
        ("λ = 0.1", 0, 0),
        ("λ = 0.5", 0, 100),
        ("λ = 1/√s", 0, 0),
    }
    assert (
        bonus_temperature.stuck(dataclasses.replace(book, yardsticks={}))[
            "hotter than the posterior"
        ]
        == []
    )


def test_tests_are_corrected_for_all_settings_of_a_temperature() -> None:
    """Seven freed seeds: 2/2⁷ alone, and no finding among the twelve cold settings."""
    told = heated(temperatures(lambda heat, lam: 7 if (heat, lam) == (0.04, 0) else 0))
    assert "of 12 cold settings the bonus frees seeds in 0 and binds some in 0" in told
    told = heated(temperatures(lambda heat, lam: 12 if (heat, lam) == (0.04, 0) else 0))
    assert "of 12 cold settings the bonus frees seeds in 3 and binds some in 0" in told
    assert (
        "Of 100 seeds, without to with it: 12 to 0 (λ = 0.1, temperature 0.04, linear-20)" in told
    )
    assert "Of 3 at the posterior's temperature it frees seeds in 0 and binds some in 0" in told


def test_the_tables_have_shares_by_weight_and_temperature() -> None:
    text = heated(temperatures(lambda heat, lam: 17 if heat == 0.25 and lam == 0 else 0))
    assert "| temperature | λ = 0 | λ = 0.1 | λ = 0.5 | λ = 1/√s |" in text
    assert "| 0.25 | 17 [11, 26] | **0 [0, 4], 17 / 0** |" in text
    assert "| 0.5 | 0 [0, 4] | 0 [0, 4] |" in text
    assert "linear-40:" not in text and "figures/bonus-temperature.svg" in text
    none = heated(temperatures(lambda heat, lam: 0))
    assert "linear-20: 0 [0, 4] in each of 32 settings." in none
    assert "One seed loses at most 1.10; stuck is from 175.0 on." in none


def test_where_few_cold_seeds_are_stuck_it_is_said_that_none_could_be_freed() -> None:
    """Five freed seeds have p = 2/2⁵ at best, six 2/2⁶."""
    few = "Without the bonus at most 5 of 100 are stuck: too few to free any."
    assert few in heated(temperatures(lambda heat, lam: 5 if lam == 0 else 0))
    assert "too few" not in heated(temperatures(lambda heat, lam: 6 if lam == 0 else 0))


def test_a_lower_mean_of_cold_draws_is_said() -> None:
    runs = temperatures(lambda heat, lam: 0)
    assert "lowers the mean regret" not in heated(runs)
    for r in runs:
        if r.settings["temperature"] == 0.25 and r.settings["lam"] == 0.1:
            r.final_regret[:] -= 5.0 + 0.01 * np.arange(SEEDS) % 0.1
    told = "In 1 of 2 settings it lowers the mean regret of cold draws. λ = 0.1, temperature 0.25"
    assert f"{told} on linear-20: −5" in heated(runs)


def test_where_the_loss_still_falls_stuck_seeds_may_be_slow() -> None:
    """All runs lose 5 less in the last 500 rounds than before; then those with a bonus do not."""
    runs = temperatures(lambda heat, lam: 30 if heat == 1 and lam == 0.5 else 0)
    text = heated(runs)
    assert "still falls at the end in 1 of 1 setting, and without it in 1 (Holm)." in text
    assert "too short to tell a stuck seed from a slow one" in text
    setting = "| λ = 0.5, temperature 1, linear-20 | 175.0 | 90.7 (1.0 to 300.0) |"
    assert f"{setting} −5.01 [−5.01, −5.01] | 1.0 (1.0 to 1.1) | −5.01 [−5.01, −5.01] |" in text
    for r in runs:
        r.curve[:, 0] += 5.01 * (r.settings["lam"] == 0.5)
    text = heated(runs)
    assert "in 0 of 1 setting, and without it in 1 (Holm)." in text and "too short" not in text
    assert "Stuck, or slow" not in heated(temperatures(lambda heat, lam: 30))


def test_a_page_of_all_runs_is_short() -> None:
    text = heated(temperatures(lambda heat, lam: 10, ("linear-20", "linear-40", "logistic-20")))
    assert len(re.findall(r"\S*\w\S*", text)) <= 900
    assert [s for s in sentences(text) if len(s.split()) >= 30] == []


def test_the_committed_page_counts_what_is_in_the_results() -> None:
    """From the files alone: regret of the last 500 rounds beside half of that of chance.

    Exact tests of two tails, each multiplied by the number of the 48 that is left to it.
    """
    found: dict[tuple[str, float, float], dict[int, bool]] = {}
    for bed, rounds in (("linear-20", 10_000), ("linear-40", 10_000), ("logistic-20", 3_000)):
        sticks = pd.read_csv(RESULTS / "yardsticks.csv")
        sticks = sticks[(sticks["testbed"] == bed) & (sticks["rounds"] == rounds)]
        (chance,) = set(sticks["uniform"])
        frame = pd.read_parquet(RESULTS / f"{bed}.parquet", columns=["settings", *COLUMNS])
        own = ["question-temperature" in " ".join(studies) for studies in frame["studies"]]
        for settings, seed, late in frame.loc[own, ["settings", *COLUMNS[1:]]].to_numpy():
            told = json.loads(settings)
            place = (bed, told["temperature"], told["lam"])
            found.setdefault(place, {})[seed] = late >= chance / rounds * 500 / 2
    changes = {}
    for (bed, heat, lam), with_it in found.items():
        plain = found[bed, heat, 0.0]
        if heat < 1 and lam > 0:
            freed = sum(plain[i] and not with_it[i] for i in range(100))
            bound = sum(with_it[i] and not plain[i] for i in range(100))
            n, k = freed + bound, min(freed, bound)
            p = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)
            changes[bed, heat, lam] = (p, sum(plain.values()), sum(with_it.values()))
    ranked = sorted(changes, key=lambda place: changes[place])
    least = list(
        itertools.takewhile(
            lambda i: changes[ranked[i]][0] * (len(ranked) - i) <= 0.05, range(len(ranked))
        )
    )
    text = (RESULTS.parent / "docs" / "results" / "bonus-temperature.md").read_text()
    told = (
        f"of {len(ranked)} cold settings the bonus frees seeds in 0 and binds some in {len(least)}"
    )
    assert told in text and len(ranked) == 48 and len(least) >= 3
    for i in least:
        (bed, heat, lam), (_, before, after) = ranked[i], changes[ranked[i]]
        assert f"{before} to {after} (λ = {lam:g}, temperature {heat:g}, {bed})" in text
        assert after > before


def test_what_is_missing_is_said_and_not_judged() -> None:
    asked = [Asked("question-temperature", "linear-20", "fglmcts", 3200, False)]
    text = heated([], asked=asked)
    assert "Not run yet: 3,200 of the 3,200 runs of `question-temperature`." in text
    assert "Nothing can be said" in text and "**Stuck seeds**" not in text
    some = temperatures(lambda heat, lam: 30 if lam == 0 else 0)[:7]
    text = heated(some, asked=asked)
    assert "Not run yet: 2,500 of the 3,200" in text and "it frees cold agents" in text
    # Weights without a run of weight 0 stand beside nothing.
    assert "Nothing can be said" in heated([r for r in some if r.settings["lam"] > 0])


# ---- networks -----------------------------------------------------------------------------------

#: Of 100 seeds so many end on the wrong arm, by λ and the cap b; the paper's cap is 10.
WRONG = {(None, None): 17, (0.1, 1.0): 33, (0.1, 10.0): 32, (0.5, 1.0): 53, (0.5, 10.0): 53}


@pytest.mark.parametrize(("lam", "cap"), WRONG)
def test_so_many_networks_are_stuck_at_the_papers_settings(
    lam: float | None, cap: float | None
) -> None:
    """Adult, from the files alone and in two ways, which name the same seeds.

    Regret over half of the rounds, or over the last 500 nearer to chance than to the forest. No
    seed is near that limit: those that are stuck lose twice as much, the others three quarters.
    """
    sticks = pd.read_csv(RESULTS / "yardsticks.csv")
    own = (sticks["testbed"] == "adult") & sticks["settings"].str.contains('"paper"')
    (line,) = np.flatnonzero(own & (sticks["rounds"] == 10_000))
    limit = (sticks["uniform"][line] + sticks["learner"][line]) / 2 / 10_000 * 500
    frame = pd.read_parquet(RESULTS / "adult.parquet")
    told = [json.loads(text) for text in frame["settings"]]
    want = {"lr": 0.005, "batch": 256, "updates": 100}
    want |= {} if lam is None else {"lam": lam, "b": cap, "lam_schedule": "constant"}
    rows = frame[
        (frame["agent"] == ("neural-lmcts" if lam is None else "neural-fglmcts"))
        & (frame["rounds"] == 10_000)
        & frame["testbed_settings"].str.contains('"preprocess": "paper"')
        & np.array([want.items() <= s.items() and f"{s['beta']}"[:5] == "775.5" for s in told])
    ]
    assert sorted(rows["seed"]) == list(range(100))
    late = rows["simple_regret"].to_numpy()
    stuck = ~(late < limit)
    assert (stuck == ~(rows["final_regret"].to_numpy() < 5_000)).all()
    assert stuck.sum() == WRONG[lam, cap]
    assert late[stuck].min() > 2 * limit and late[~stuck].max() < 0.75 * limit
    if cap != 1.0:
        page = (RESULTS.parent / "docs" / "results" / "bonus-neural.md").read_text()
        agent = "`neural-lmcts`" if lam is None else f"`neural-fglmcts`, λ = {lam:g},"
        assert f"{agent} on adult: {WRONG[lam, cap]} of 100 [" in page


PAPER: dict[str, Any] = {"lr": 0.005, "beta": 775.5, "batch": 256}
HARD: dict[str, Any] = PAPER | {"b": 10.0, "lam_schedule": "constant"}


def networks(
    plain: int = 17,
    bonus: int = 50,
    soft: int = 50,
    filtered: int = 17,
    longest: int = 17,
    other: int | None = None,
) -> list[AgentResult]:
    """All runs of the study, with so many stuck seeds."""
    runs = [
        run("neural-lmcts", longest if lr == 0.02 else plain, "adult", **PAPER | {"lr": lr})
        for lr in (0.00125, 0.0025, 0.005, 0.01, 0.02)
    ]
    for beta in (7.755, 77.55, 7755.0):
        runs.append(run("neural-lmcts", plain, "adult", **PAPER | {"beta": beta}))
    runs.append(run("neural-lmcts", plain, "adult", **PAPER | {"batch": 0}))
    runs.append(run("neural-malats", filtered, "adult", lr=0.005, beta=775.5))
    for lam in (0.1, 0.5):
        for beta in (7.755, 77.55, 775.5):
            runs.append(run("neural-fglmcts", bonus, "adult", **HARD | {"beta": beta, "lam": lam}))
        for softness in (0.01, 0.1, 1.0, 100.0):
            own = PAPER | {"b": 10.0, "lam": lam, "softness": softness}
            runs.append(run("neural-soft-fglmcts", soft, "adult", **own))
        if other is not None:
            own = PAPER | {"b": 10.0, "lam": 0.0, "lift": lam}
            runs.append(run("neural-parted-fglmcts", other, "adult", **own))
    box = {"lr": 0.01, "beta": "auto", "batch": 64}
    runs.append(run("neural-lmcts", 0, "adult", **box))
    runs.append(run("neural-fglmcts", 0, "adult", **box, lam=1.0, lam_schedule="sqrt"))
    return runs


def long_steps(plain: int = 5, filtered: int = 5) -> list[AgentResult]:
    """All runs of the study of a filter at long steps, with so many stuck seeds."""
    own = [PAPER | {"lr": lr} for lr in (0.02, 0.2)]
    runs = [run("neural-lmcts", plain, "adult", **o | {"batch": b}) for o in own for b in (256, 0)]
    return [*runs, *(run("neural-malats", filtered, "adult", **o | {"batch": 0}) for o in own)]


def told(runs: list[AgentResult], **parts: Any) -> str:
    """Of two arms chance loses 1000 in 2,000 rounds, the best arm 900, and so the other 1,100.

    Over 500 rounds that is 250 and 275: from 262.5 on a seed is on the wrong arm.
    """
    book = book_of("question-stuck", runs, yardsticks=halfway(runs, 400.0, 900.0), **parts)
    return page(book, stuck_networks.QUESTION)


@pytest.mark.parametrize(
    ("made", "incumbent", "wider"),
    [
        ({"soft": 17}, "supported", "not supported"),
        ({"soft": 17, "other": 17}, "supported", "not supported"),
        ({"soft": 3, "other": 2}, "supported", "not supported"),
        ({"soft": 17, "other": 60}, "not supported", "not supported"),
        ({"soft": 49}, "not supported", "not supported"),
        ({"soft": 90}, "not supported", "not supported"),
        ({"soft": 17, "bonus": 1}, "contradicted", "not supported"),
        ({}, "not supported", "not supported"),
        ({"bonus": 17, "soft": 17}, "not supported", "not supported"),
        ({"filtered": 60, "longest": 1}, "not supported", "supported"),
        ({"longest": 1}, "not supported", "not supported"),
        ({"filtered": 60}, "not supported", "supported"),
        ({"filtered": 1}, "not supported", "contradicted"),
    ],
)
def test_which_conjecture_the_runs_support(made: Any, incumbent: str, wider: str) -> None:
    text = told(networks(**made))
    assert f"**The gradient goes to the incumbent**: {incumbent}. All that the bonus adds" in text
    assert f"**Unadjusted steps have a wider law**: {wider} at the paper's step:" in text


def test_what_the_bonus_does_and_what_frees() -> None:
    text = told(networks(soft=17))
    assert "17 % [11, 26] of 100 seeds are on the wrong arm after 2,000 rounds." in text
    assert "It *binds* seeds in 6 of 6 settings, *frees* some in 0." in text
    alike = "The same weight on both arms alike (softness 100) *binds* seeds in 0 of 2 settings"
    assert f"{alike}, *frees* some in 0. Beside the best arm alone it frees some in 2" in text
    assert "On the other arm alone" not in text and "Smoothed less" not in text
    assert "What frees seeds: nothing that was tried" in text
    assert "Out of the box 0 of 100 are, and 0 with λ = " in text
    text = told(networks(soft=3, other=2))
    assert f"{alike}, *frees* some in 2. Beside the best arm alone it" in text
    assert "On the other arm alone it *binds* seeds in 0 of 2 settings, *frees* some" in text
    freeing = "a smoothed maximum and a bonus on the other arm alone"
    assert f"What frees seeds: {freeing}." in text
    assert "| λ = 0.5, softness 100 | 3 % [1, 8] |  | 150.2 (60.5) | **14 / 0** |" in text
    assert "| λ = 0.5, other arm alone | 2 % [1, 7] |  | 120.3 (60.5) | **15 / 0** |" in text
    assert "| λ = 0.5, temperature × 100 | 50 % [40, 60] |" in text
    assert "λ = 1/√s, out of the box" in text
    text = told(networks(soft=90))
    assert "| λ = 0.5, softness 100 | 90 % [83, 94] |  | 2,751† (3,050) | **0 / 73** |" in text
    assert "Smoothed less it binds, too: 6 settings." in text
    assert "Long steps also move farther, and no filter" in told(networks(longest=1))
    assert "farther" not in told(networks(longest=1, filtered=60)) + told(networks())
    assert len(re.findall(r"\S*\w\S*", text)) <= 900
    assert [s for s in sentences(text) if len(s.split()) >= 30] == []


def test_seeds_on_the_wrong_arm_are_told_from_those_that_play_by_chance() -> None:
    """Stuck seeds lose 175 or more in the last 500 rounds, those on the wrong arm 262.5 or more."""
    runs = networks()
    runs[2].simple_regret[:11] = 263.0
    runs[2].simple_regret[11] = math.nan
    assert "| the paper's settings, no bonus | 17 % [11, 26] |  |" in told(runs)
    runs[2].simple_regret[:11] = 262.0
    assert "| the paper's settings, no bonus | 6 % [3, 12] | 17 |" in told(runs)


def test_the_wrong_one_of_more_than_two_arms_is_not_known() -> None:
    (made,) = [run("a", 0, "adult")]
    for uniform, known in ((1000.0, 315.0), (1200.0, None)):
        own = {yardsticks.key_of(made): Yardstick(*yardsticks.key_of(made), uniform, 480.0, 400.0)}
        assert stuck_networks.wrong_arm_bar(Book(Shelf([]), yardsticks=own))(made) == known


@pytest.mark.parametrize(
    ("filtered", "said"),
    [
        (5, "Not supported at 4 and 40 times that step: the filter binds 0 and 0 of 100 and"),
        (60, "Supported at 4 and 40 times that step: the filter binds 55 and 55 of 100 and"),
    ],
)
def test_a_filter_at_long_steps_says_whether_their_width_frees(filtered: int, said: str) -> None:
    short = [r for r in networks(soft=17, longest=1) if r.settings.get("lr") != 0.02]
    text = told(short + long_steps(filtered=filtered))
    assert said in text
    assert ("A small effect is not excluded." in text) == (filtered == 5)
    assert "What frees seeds: longer steps" in text
    assert "no filter was run" not in text
    assert "| Metropolis filter, step × 40 (without: 5 %) |" in text
    assert "whole history" not in text
    assert len(re.findall(r"\S*\w\S*", text)) <= 900
    assert [s for s in sentences(text) if len(s.split()) >= 30] == []


def test_parts_of_the_study_are_judged_as_far_as_they_go() -> None:
    asked = [Asked("question-stuck", "adult", "neural-lmcts", 900, False)]
    text = told([], asked=asked)
    assert "Not run yet: 900 of the 900" in text and "conjecture" not in text.split("\n\n", 2)[2]
    for end in range(1, len(networks())):
        some = told(networks(soft=17, filtered=60, longest=1)[:end], asked=asked)
        assert ("All settings" in some) == (end > 2)
    assert "incumbent**: not run." in told(networks()[:10])
    assert "wider law**: not run." in told(networks()[:9])
    without_yardstick = book_of("question-stuck", networks())
    assert "Nothing can be said" in page(without_yardstick, stuck_networks.QUESTION)


def test_chains_that_diverged_are_counted_apart() -> None:
    runs = networks()
    runs[-1].final_regret[:13] = runs[-1].simple_regret[:13] = math.nan
    assert "| 13 % [8, 21] |  | 60.6 (60.6), 13 diverged | **0 / 13** |" in told(runs)


def test_runs_of_a_plug_in_that_is_not_loaded_are_read_as_they_are() -> None:
    text = json.dumps({"softness": 0.1})
    assert later_settings.with_later_settings("adult", "no-such-agent", text) == text


def test_beside_is_what_it_says() -> None:
    found = Beside("x", run("a", 0, "adult"), run("b", 0, "adult"), 1, 8, 100, 2, 0.04, 0.04)
    assert found.binds and not found.frees and found.after == 9
