"""What the pages say follows from the numbers: made results with known answers."""

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_results import result

from feelgood.engine.results import AgentResult, PosteriorAlong
from feelgood.stats.holm import holm
from feelgood.studies import read_study
from showdown import pairs, wording, yardsticks
from showdown.asking import Asked, asked_by, read, write
from showdown.book import Book
from showdown.changes import change_of, pooled
from showdown.effects import Effect, distinct, effect
from showdown.families import Family, Word, counts_table, stuck_sentences, tally_sentence
from showdown.keeping import Kept
from showdown.question import Claim, ClaimVerdict, Question, Says, Verdict, all_questions, page
from showdown.questions import (
    bonus_linear,
    compute,
    defaults,
    missing,
    posterior,
    preconditioning,
    samplers,
    smoothing,
    temperature,
)
from showdown.shelf import Shelf
from showdown.yardsticks import Yardstick

#: Thirty seeds without any trend, of mean 0.
NOISE = np.random.default_rng(7).normal(0.0, 0.3, 30)
NOISE -= NOISE.mean()


def run(agent: str, values: Any, testbed: str = "linear-20", **settings: Any) -> AgentResult:
    """A result of sound steps with these regrets and settings."""
    made = result(agent, values, testbed=testbed)
    return dataclasses.replace(made, settings={"schedule": "curvature", "beta": 1.0, **settings})


def book_of(*runs: tuple[str, AgentResult], **parts: Any) -> Book:
    return Book(Shelf([Kept(r, (study,)) for study, r in runs]), **parts)


def pair(changed: Any, base: Any = 100.0 + NOISE, testbed: str = "linear-20") -> Effect:
    return effect("x", run("changed", changed, testbed), run("base", base, testbed))


def word_of(e: Effect) -> Word:
    (judged,) = Family.of("one", [e]).members
    return judged.word()


# Effects and families ------------------------------------------------------------------------


def test_words_follow_the_test() -> None:
    assert word_of(pair(95.0 - NOISE)) is Word.HELPS
    assert word_of(pair(105.0 - NOISE)) is Word.HURTS
    assert word_of(pair(100.0 + NOISE[::-1])) is Word.NOTHING
    few = pair((90.0 - NOISE)[:19])
    assert (word_of(few), few.why) == (Word.UNKNOWN, "19 seeds: not enough yet")
    broken = pair(np.where(np.arange(30) < 2, np.nan, 90.0))
    assert (word_of(broken), broken.why) == (Word.UNKNOWN, "chains diverged on 2 of 30 seeds")
    assert effect("", None, run("base", NOISE)).why == "not run"
    apart = dataclasses.replace(run("x", NOISE), seeds=tuple(range(50, 80)))
    assert effect("", apart, run("base", NOISE)).why == "no seed in common"


def test_ties_within_rounding_are_ties() -> None:
    base = 100.0 + NOISE
    e = pair(np.where(np.arange(30) < 3, base - 1.0, base * (1 + 1e-7)), base)
    assert (e.ties, e.better and e.better.value) == (27, pytest.approx((3 + 27 / 2) / 30))
    assert np.count_nonzero(e.differences) == 3


def test_a_pair_is_judged_on_its_own_seeds() -> None:
    """The base may have more seeds than the changed agent; its others do not count."""
    e = pair(110.0 + NOISE, [*(100.0 + NOISE), *(500.0 + NOISE)])
    assert e.difference is not None
    assert e.difference.value == pytest.approx(10.0)
    change = pooled([e])
    assert change is not None
    assert change.value == pytest.approx(10.0 / (100.0 + NOISE.mean()))


def test_testbeds_count_alike_in_a_mean_change() -> None:
    """Two pairs of +10 % on one testbed and one of +60 % on another: √(1.1 · 1.6)."""
    base = np.full(30, 100.0)
    effects = [pair(base + 10 + NOISE, base), pair(base + 10 - NOISE, base)]
    effects.append(pair(base + 60 + NOISE, base, "linear-40"))
    change = pooled(effects)
    assert change is not None
    assert change.value == pytest.approx(math.sqrt(1.1 * 1.6) - 1, abs=1e-4)
    assert change.low < change.value < change.high
    assert pooled([pair(base[:5])]) is None


def test_twice_and_half_the_regret_cancel() -> None:
    base = np.full(30, 100.0)
    change = pooled([pair(200.0 + NOISE, base), pair(50.0 + NOISE[::-1], base, "linear-40")])
    assert change is not None
    assert change.low < 0 < change.high
    assert change.value == pytest.approx(0.0, abs=0.01)


def test_every_seed_of_a_pair_counts_in_a_mean_change() -> None:
    """Other pairs may have fewer: means are over 60 seeds here and over 30 there."""
    longer = np.concatenate([np.full(30, 110.0), np.full(30, 130.0)]) + np.tile(NOISE, 2)
    here = pair(longer, np.full(60, 100.0))
    there = pair(120.0 + NOISE, np.full(30, 100.0), "linear-40")
    change = pooled([here, there])
    assert change is not None
    assert (change.value, change.count) == (pytest.approx(0.2, abs=1e-4), 60)


def test_the_interval_of_a_change_covers_as_often_as_it_says() -> None:
    """Log-normal regrets, two testbeds with shared seeds: 95 % within five errors, 1e-6."""
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        luck = rng.normal(0.0, 0.3, 40)
        base = np.exp(luck + rng.normal(0.0, 0.2, (2, 40)))
        own = 1.3 * np.exp(luck + rng.normal(0.0, 0.2, (2, 40)))
        change = change_of(own, base, np.array([0.5, 0.5]), 0.95, draws=599)
        assert change is not None
        inside += change.low <= 0.3 <= change.high
    assert abs(inside / 400 - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 400)


def test_nothing_lost_and_nothing_changed() -> None:
    nothing = np.zeros((1, 20))
    assert change_of(nothing, nothing + 1.0, np.ones(1), 0.95) is None
    same = change_of(nothing + 2.0, nothing + 2.0, np.ones(1), 0.95)
    assert same is not None
    assert (same.value, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)


def test_an_end_that_is_far_off_is_none() -> None:
    """One seed in thirty differs: nothing bounds the difference below. A wide interval stays."""
    base = 100.0 + NOISE
    one = pair(np.where(np.arange(30) == 3, base - 90.0, base), base)
    assert one.difference is not None
    assert one.difference.low < -300
    assert one.ends[0] is None and one.ends[1] == one.difference.high
    whole = pair(500.0 + 200 * NOISE, 10.0 + NOISE)
    assert whole.difference is not None
    assert whole.difference.high > float(whole.with_it.mean())
    assert whole.ends == (whole.difference.low, whole.difference.high)
    (row,) = pairs.rows_of(book_of(), [Family.of("f", [one])])
    assert row["low"] is None


def test_a_family_is_corrected_for_its_number() -> None:
    """A mean of 2.5 errors among nothings counts raw, and not by Holm's rule."""
    base = np.full(30, 100.0)
    some = 2.5 * NOISE.std(ddof=1) / np.sqrt(30)
    effects = [pair(base + some + NOISE, base)]
    effects += [pair(base + scale * NOISE, base) for scale in range(1, 20)]
    family = Family.of("f", [*effects, pair(base[:5] - 50)])
    raw = [m.raw for m in family.members[:20]]
    np.testing.assert_allclose([m.holm for m in family.members[:20]], holm(np.array(raw)))
    assert (family.tested, len(family.members)) == (20, 21)
    assert (family.counts(Word.HURTS), family.counts(Word.HELPS)) == ((1, 0, 0), (0, 0, 0))
    line = counts_table([family]).splitlines()[-1]
    assert line.startswith("| f | 20 | 0 / 0 | 0 / 0 | 0 / 1 | 1 |")


def test_a_pair_counts_once() -> None:
    """At b = 1000 the smoothed agent is the plain one; where it plays otherwise it counts."""
    base = run("lmcts", 100.0 + NOISE)
    changed = [
        run("fglmcts", 110.0 - NOISE, lam=0.5, b=1000.0),
        run("sfglmcts", 110.0 - NOISE, lam=0.5, b=1000.0, s=10.0),
        run("sfglmcts", 120.0 - NOISE, lam=0.5, b=1.0, s=10.0),
    ]
    assert len(distinct([effect("", r, base) for r in changed])) == 2


def test_what_only_all_pairs_together_show_is_said() -> None:
    """Every pair has a p above Holm's level; the mean over twenty testbeds does not."""
    base = np.full(30, 100.0)
    some = 1.5 * NOISE.std(ddof=1) / np.sqrt(30)
    rng = np.random.default_rng(1)
    effects = [pair(base + some + rng.permutation(NOISE), base, f"bed-{i}") for i in range(20)]
    told = tally_sentence("It", Family.of("f", effects))
    assert "20 testbeds regret is lower in 0 and higher in 0 (Holm, 30 seeds). All tog" in told
    assert re.search(r"change regret by \+0\.1 % \[\+0\.0, \+0\.1\], 95 % interval\.$", told)
    assert "All together" not in tally_sentence("It", Family.of("f", effects[:1]))


# Claims --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says", "verdict"),
    [
        (-10.0, Says.LOWER, Verdict.HOLDS),
        (-10.0, Says.HIGHER, Verdict.NOT),
        (+10.0, Says.HIGHER, Verdict.HOLDS),
        (+10.0, Says.LOWER, Verdict.NOT),
        (0.0, Says.LOWER, Verdict.NOT),
        (0.0, Says.HIGHER, Verdict.NOT),
    ],
)
def test_a_claim_is_judged_by_its_interval(change: float, says: Says, verdict: Verdict) -> None:
    effects = [pair(100.0 + change + NOISE[::-1])]
    claim = Claim("it", "", says, "", lambda book: effects)
    assert claim.judge(book_of(), 0.99).verdict is verdict
    wide = [pair(100.0 + change / 5 + 100 * NOISE[::-1])]
    unsure = dataclasses.replace(claim, pairs=lambda book: wide)
    assert unsure.judge(book_of(), 0.99).verdict is Verdict.OPEN
    assert dataclasses.replace(claim, testbeds=2).judge(book_of(), 0.99).verdict is Verdict.OPEN


def test_no_testbed_decides_a_claim_alone() -> None:
    """Four testbeds with less regret, of which one has most of the gain, or all of it."""
    beds = ("linear-20", "linear-40", "adult", "magic")

    def judged(*changes: float) -> ClaimVerdict:
        own = [pair(100.0 + c + NOISE, testbed=t) for c, t in zip(changes, beds, strict=True)]
        return Claim("it", "", Says.LOWER, "", lambda book: own).judge(book_of(), 0.99)

    assert judged(-10, -10, -10, -50).verdict is Verdict.HOLDS
    alone = judged(2, 2, 2, -50)
    assert (alone.verdict, alone.hangs_on) == (Verdict.OPEN, ", hangs on magic")
    assert alone.change is not None and alone.change.high < 0, "by its interval it would hold"
    assert alone.basis == "4 pairs, 4 testbeds, 30 seeds"
    assert judged(50, 50, 2, -1).verdict is Verdict.NOT


def test_two_testbeds_that_disagree_leave_a_claim_open() -> None:
    def judged(*changes: float) -> ClaimVerdict:
        beds = zip(changes, ("linear-20", "linear-40"), strict=True)
        own = [pair(100.0 + c + NOISE, testbed=t) for c, t in beds]
        return Claim("it", "", Says.LOWER, "", lambda book: own).judge(book_of(), 0.99)

    both = judged(-50, 10)
    assert both.change is not None and both.change.high < 0, "together it would hold"
    assert (both.verdict, both.hangs_on) == (Verdict.OPEN, ", its testbeds disagree")
    assert [round(own.value, 2) for own in both.by_itself.values()] == [-0.5, 0.1]
    assert (judged(-50, -10).verdict, judged(-50, -10).hangs_on) == (Verdict.HOLDS, "")
    assert both.basis == "2 pairs, linear-20 and linear-40, 30 seeds"


def test_a_small_gain_that_is_sure_holds() -> None:
    """It excludes a gain of 5 %, too: *holds* is asked first."""
    claim = Claim("it", "", Says.LOWER, "", lambda book: [pair(98.0 + NOISE)])
    judged = claim.judge(book_of(), 0.99)
    assert judged.change is not None and judged.change.low > -0.05
    assert judged.verdict is Verdict.HOLDS


def test_a_claim_without_seeds_is_open() -> None:
    claim = Claim("it", "", Says.LOWER, "", lambda book: [pair([1.0, 2.0])])
    judged = claim.judge(book_of(), 0.99)
    assert (judged.verdict, judged.number) == (Verdict.OPEN, "not enough seeds yet")


# Stuck seeds and yardsticks ------------------------------------------------------------------


def test_stuck_seeds_are_nearer_to_chance_than_to_a_told_learner() -> None:
    """Chance loses 1,000 of 2,000 rounds, the learner 400: from 175 of the last 500 on."""
    made = dataclasses.replace(
        run("lmcts", np.full(20, 500.0)),
        rounds=2000,
        simple_regret=np.array([*[100.0] * 15, 174.0, 175.0, 250.0, np.nan, 400.0]),
    )
    own = Yardstick(*yardsticks.key_of(made), 1000.0, 450.0, 400.0)
    found = {yardsticks.key_of(made): own}
    share = yardsticks.stuck(made, found)
    assert share is not None
    assert share.value == pytest.approx(4 / 20), "a chain that diverged is stuck, too"
    assert yardsticks.stuck(made, {}) is None
    world = dataclasses.replace(own, learner=np.nan)
    assert world.stuck_from == pytest.approx(125.0), "where nothing need be lost"
    e = effect("x", dataclasses.replace(made, agent="y"), made)
    book = book_of(yardsticks=found)
    members = Family.of("f", [e]).members
    assert stuck_sentences(book, members)[0] == "`lmcts` on linear-20: 4 of 20 [8, 42]"


def test_stuck_seeds_are_counted_run_by_run() -> None:
    """Runs that share agent, weight and testbed are told apart, and none is lost."""

    def stuck(count: int, **settings: Any) -> AgentResult:
        made = run("fglmcts", np.full(20, 500.0 + count), **settings)
        lost = np.where(np.arange(20) < count, 400.0, 1.0)
        return dataclasses.replace(made, rounds=2000, simple_regret=lost)

    mean, score = (stuck(n, lam=1.0, bonus_on=on) for n, on in ((8, "mean"), (19, "score")))
    ours, theirs = stuck(3, lam=0.0), stuck(5, lam=0.0, beta=2.0)
    other = stuck(7, lam=0.0, beta=3.0)
    key = yardsticks.key_of(mean)
    book = book_of(yardsticks={key: Yardstick(*key, 1000.0, 450.0, np.nan)})
    first = Family.of("one", [effect("x", mean, ours), effect("x", score, ours)]).members
    second = Family.of("two", [effect("x", mean, theirs)]).members
    assert stuck_sentences(book, [*first, *second]) == [
        "`fglmcts` on linear-20 (one): 3 of 20 [5, 36]",
        "`fglmcts`, λ = 1, on linear-20: 8 of 20 [22, 61]",
        "`fglmcts`, λ = 1, bonus on the score, on linear-20: 19 of 20 [76, 99]",
        "`fglmcts` on linear-20 (two): 5 of 20 [11, 47]",
    ]
    both = Family.of("one", [effect("x", mean, theirs), effect("x", score, other)]).members
    told = stuck_sentences(book, both)
    assert told[0].startswith("`fglmcts` on linear-20 (beta = 2.0): 5 of 20")
    assert told[2].startswith("`fglmcts` on linear-20 (beta = 3.0): 7 of 20")


def test_a_pair_has_its_fixed_arm_and_who_is_freed() -> None:
    """Ten seeds are stuck without it, two other ones with it; both means are on either side."""

    def stuck(mean: float, which: range, agent: str) -> AgentResult:
        lost = np.where(np.isin(np.arange(30), which), 400.0, 1.0)
        return dataclasses.replace(run(agent, mean + NOISE), rounds=2000, simple_regret=lost)

    base, changed = stuck(500.0, range(10), "lmcts"), stuck(449.0, range(20, 22), "fglmcts")
    key = yardsticks.key_of(base)
    book = book_of(yardsticks={key: Yardstick(*key, 1000.0, 450.0, np.nan)})
    (row,) = pairs.rows_of(book, [Family.of("f", [effect("x", changed, base)])])
    assert (row["best_fixed_arm"], row["stuck_without"], row["stuck_with"]) == (450.0, 10, 2)
    assert (row["freed"], row["bound"]) == (10, 2)
    assert row["p_stuck_holm"] == pytest.approx(2 * (1 + 12 + 66) / 2**12)
    told = pairs.to_html({"mine": [row]})
    assert re.search(r"<td>500(\.\d+)?†</td><td>449(\.\d+)?</td><td>450</td>", told)
    assert "†" not in pairs.to_csv([row])
    (alone,) = pairs.rows_of(book_of(), [Family.of("f", [effect("x", changed, base)])])
    assert (alone["best_fixed_arm"], alone["p_stuck_holm"]) == (None, None)
    assert "†</td>" not in pairs.to_html({"mine": [alone]})
    assert yardsticks.mark(np.nan, 1.0) == yardsticks.mark(1.0, 1.0) == "†"


def test_yardsticks_are_kept(tmp_path: Path) -> None:
    made = [Yardstick("a", "{}", 10, 5.0, 4.5, 3.25), Yardstick("b", "{}", 10, 7.0, 6.0, np.nan)]
    yardsticks.write(tmp_path, made)
    back = yardsticks.read(tmp_path)
    assert back["a", "{}", 10] == made[0]
    assert np.isnan(back["b", "{}", 10].learner)
    assert "| b | 10 | 7.00 | 6.00 | – |" in yardsticks.table(list(back.values()))
    assert yardsticks.read(tmp_path / "nowhere") == {}


@pytest.mark.slow
def test_yardsticks_are_measured() -> None:
    """Rare digits: chance and a fixed arm lose nine of ten, a told forest a sixth of that."""
    pytest.importorskip("sklearn")
    found = yardsticks.measure_one("digits", "{}", 1000)
    assert found.uniform == pytest.approx(900.0)
    assert 860 < found.fixed < 900
    assert 80 < found.learner < 250
    linear = yardsticks.measure_one("linear-20", "{}", 500)
    assert linear.fixed <= linear.uniform
    assert np.isnan(linear.learner)


# Questions -----------------------------------------------------------------------------------


def test_the_bonus_is_judged_beside_the_agent_without() -> None:
    study = "question-lambda"
    book = book_of(
        (study, run("fglmcts", 100.0 + NOISE, lam=0.0, b=1000.0)),
        (study, run("fglmcts", 90.0 - NOISE, lam=0.01, b=1000.0)),
        (study, run("fglmcts", 100.0 + NOISE[::-1], lam=0.1, b=1000.0)),
        (study, run("fglmcts", 130.0 - NOISE, lam=0.5, b=1000.0)),
        (study, run("fglmcts", [1.0, 2.0], lam=1.0, b=1000.0)),
        (study, run("fglmcts", 50.0 + NOISE, lam=0.5, b=1.0, eta=1.0, testbed="linear-40")),
        ("another", run("fglmcts", 1.0 + NOISE, lam=0.0, b=1000.0, eta=3.0, testbed="linear-40")),
    )
    text = page(book, bonus_linear.QUESTION)
    assert "of 3 pairs on linear-20 regret is lower in 1 and higher in 1 (Holm, 30" in text
    assert "| sound steps | 3 | 1 / 1 | 1 / 1 | 1 / 1 | 2 |" in text
    assert "## Pairs" not in text and "bonus-linear.csv" in text
    assert "figures/lambda-linear.svg" in book.figures
    rows = pairs.rows_of(book, bonus_linear.families(book))
    assert [row["why"] for row in rows[-2:]] == ["2 seeds: not enough yet", "not run"]
    lines = pairs.to_csv(rows).splitlines()
    assert lines[0].startswith("family,testbed,agent,beside,what,seeds,mean_with,")
    assert "<td>helps</td>" in pairs.to_html({"bonus-linear": rows})


def test_smoothing_and_preconditioning_find_their_twins() -> None:
    smooth = book_of(
        ("x", run("fglmcts", 100.0 + NOISE, lam=0.1, b=1.0)),
        ("question-smoothing", run("sfglmcts", 110.0 - NOISE, lam=0.1, b=1.0, s=10.0)),
        ("question-smoothing", run("sfglmcts", 90.0 - NOISE, lam=0.1, b=2.0, s=10.0)),
    )
    bound, first, _ = smoothing.families(smooth)
    assert [m.word() for m in bound.members] == [Word.HURTS, Word.UNKNOWN]
    assert [m.word() for m in first.members] == [Word.HURTS], "the second has no twin"
    hot = book_of(
        ("x", run("lmcts", 100.0 + NOISE)),
        ("question-preconditioning", run("plmcts", 90.0 - NOISE, lambda_reg=1.0)),
        ("question-preconditioning", run("phmcts", 90.0 - NOISE)),
        ("x", run("hmcts", 100.0 - NOISE, beta=10.0)),
    )
    equal, _ = preconditioning.families(hot)
    words = {m.effect.agent: m.word() for m in equal.members}
    assert words == {"plmcts": Word.HELPS, "phmcts": Word.UNKNOWN}, "another temperature"


def test_the_correction_and_the_warm_up_are_told_apart() -> None:
    study = "question-metropolis"
    book = book_of(
        (study, run("lmcts", 100.0 + NOISE, steps=25)),
        (study, run("lmcts", 120.0 - NOISE, steps=5)),
        (study, run("malats", 100.0 + NOISE[::-1], steps=25, warmup_steps=0)),
        (study, run("malats", 80.0 - NOISE, steps=25, warmup_steps=20)),
    )
    words = {f.name: f.members[0].word() for f in samplers.families(book)[3:7]}
    assert words == {
        samplers.WHOLE: Word.HELPS,
        samplers.CORRECTION: Word.NOTHING,
        samplers.WARM_UP: Word.HELPS,
        samplers.FEWER: Word.HURTS,
    }


def test_malats_stands_beside_linucb_as_stated_and_as_released() -> None:
    mala = run("malats", 100.0 + NOISE, steps=25, warmup_steps=20, schedule="decay")
    book = book_of(
        ("question-metropolis", mala),
        ("table-main", run("linucb", 80.0 - NOISE, alpha=0.1, schedule="decay")),
        ("question-default", run("linucb", 130.0 - NOISE, alpha=1.0, schedule="decay")),
        ("ranking", run("malats", 90.0 + NOISE, steps=5)),
        ("ranking", run("linucb", 70.0 - NOISE, alpha=0.3)),
    )
    found = {f.name: [m.word() for m in f.members] for f in samplers.families(book)}
    assert found[samplers.LINUCB[samplers.STATED]] == [Word.HURTS]
    assert found[samplers.LINUCB[samplers.RELEASED]] == [Word.HELPS]
    assert found[samplers.TUNED] == [Word.HURTS]


def test_how_many_steps_are_enough() -> None:
    values = {1: 150.0 - NOISE, 5: 100.0 + NOISE[::-1], 25: 100.0 + NOISE}
    runs = (("question-compute", run("lmcts", v, steps=k)) for k, v in values.items())
    text = page(book_of(*runs), compute.QUESTION)
    assert "`lmcts`, steps per round beside 25: higher regret with 1." in text


def test_temperatures_are_in_units_of_the_posterior_s() -> None:
    noisy = {"testbed_settings": {"noise": 0.5}}
    lints = dataclasses.replace(result("lints", NOISE), settings={"eta": 40.0}, **noisy)
    assert temperature.temperature(lints) == pytest.approx(0.1)
    lmcts = dataclasses.replace(run("lmcts", NOISE, beta=0.2, eta=1.0), **noisy)
    assert temperature.temperature(lmcts) == pytest.approx(10.0)


def test_regret_and_posterior_error_by_rank() -> None:
    def measured(size: float, regret: float) -> AgentResult:
        value = size + NOISE[:, None] / 100
        value = {"wasserstein2": value, "trace": value}
        along = PosteriorAlong(np.array([4]), value, {}, {})
        return dataclasses.replace(run("lmcts", regret - NOISE, beta=size), posterior=along)

    def told(regrets: tuple[float, ...]) -> list[str]:
        runs = [("x", measured(float(i), own)) for i, own in enumerate(regrets, 1)]
        return posterior.says(book_of(*runs), ())

    variance, hot, cold = told((10.0, 20.0, 30.0, 40.0))
    assert "4 settings: a larger variance of the draws goes with a larger regret" in variance
    assert "scatter no less than the posterior, 4 settings: a larger error goes" in hot
    assert "scatter no more than the posterior: not enough yet, with 1 settings" in cold
    hotter = told((40.0, 30.0, 20.0, 10.0))[1]
    assert "a larger error goes with a smaller regret" in hotter and "Colder" not in hotter
    assert "not enough yet, with 2 settings" in told((1.0, 2.0))[0]


def test_the_defaults_are_ranked_by_kind() -> None:
    def everywhere(agent: str, shift: float) -> list[tuple[str, AgentResult]]:
        beds = ("linear-20", "linear-40")
        return [("question-default", run(agent, 100.0 + shift + NOISE, t)) for t in beds]

    book = book_of(*everywhere("a", 0.0), *everywhere("b", 9.0))
    text = page(book, defaults.QUESTION)
    assert re.search(r"linear: `a` may be the best by mean rank \(30 seeds\)\. Lowest: `a`", text)
    assert "| `a` | 1.0 | **" in text


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Half a sweep, an agent, a testbed; a run that was not measured is none."""
    text = 'testbeds = ["linear-20", "linear-40"]\nagents = ["lints", "lmcts"]\nrounds = 8\n'
    file = tmp_path / "mine.toml"
    file.write_text(text + "seeds = 10\n")
    asked = asked_by("mine", read_study(file).study.cells)
    write(tmp_path, asked)
    assert read(tmp_path) == asked
    assert [a.seeds for a in asked] == [10] * 4
    lints = result("lints", NOISE[:10])
    half = result("lmcts", NOISE[:5])

    def said(*runs: AgentResult, wanted: list[Asked] = asked) -> str:
        return page(book_of(*(("mine", r) for r in runs), asked=wanted), missing.QUESTION)

    assert "ask for 40 runs" in said(lints, half)
    assert "| `mine` | 15 of 40 | linear-20: `lmcts`; linear-40 |" in said(lints, half)
    measured = [dataclasses.replace(a, measured=True) for a in asked if a.agent == "lints"]
    assert "| `mine` | 0 of 20 | all |" in said(lints, wanted=measured)
    assert "`mine`" not in said(lints, wanted=asked[:1])


def test_a_question_is_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module in the folder is found, and its page has its parts."""
    import showdown.questions as folder

    (tmp_path / "mine.py").write_text(
        "from showdown.question import Question\n"
        "QUESTION = Question(name='mine', place=1, title='Why?', asks='Because.')\n"
    )
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    found = all_questions()
    assert found[0] == Question(name="mine", place=1, title="Why?", asks="Because.")
    assert page(book_of(), found[0]).startswith("# Why?\n\nBecause.\n\n")
    assert len({q.name for q in found}) == len(found)


def test_numbers_are_short_and_signed() -> None:
    told = [wording.number(v) for v in (12345.6, 12.34, -1.234, float("nan"), float("-inf"))]
    assert told == ["12,346", "12.3", "−1.23", "–", "−∞"]
    assert wording.signed(3.0) == "+3.00"
    assert wording.count(1, "pair") == "1 pair"
    assert wording.count(2, "pair") == "2 pairs"
