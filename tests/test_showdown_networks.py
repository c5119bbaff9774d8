"""Pages on networks: what they say follows from made results, in part and as a whole."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from made_results import result
from test_readme import sentences

from feelgood.engine.results import AgentResult
from showdown import yardsticks
from showdown.asking import Asked
from showdown.book import Book
from showdown.keeping import Kept
from showdown.pairing import DATA
from showdown.question import Question, page
from showdown.questions import bonus_logistic, bonus_neural, network_kernels, risky_mushrooms
from showdown.shelf import Shelf
from showdown.yardsticks import Yardstick

SEEDS = 30
NOISE = np.random.default_rng(3).normal(0.0, 1.0, SEEDS)
#: A study and one of its runs.
Made = tuple[str, AgentResult]


def run(
    agent: str, mean: float, testbed: str, seed: int = 0, stuck: int = 0, **settings: Any
) -> AgentResult:
    """Thirty seeds around a mean, some stuck; `seed` tells runs of the same mean apart."""
    noise = np.random.default_rng(seed).normal(0.0, 1.0, SEEDS)
    made = result(agent, mean + NOISE + 0.1 * noise, testbed=testbed, rounds=2000)
    late = np.where(np.arange(SEEDS) < stuck, 100.0, 1.0)
    return dataclasses.replace(made, settings=settings, simple_regret=late)


def told(question: Question, runs: Iterable[Made], **parts: Any) -> str:
    """The page, with a yardstick of 200 for chance and 150 for a fixed arm everywhere."""
    kept = [Kept(r, (study,)) for study, r in runs]
    known = {
        key: Yardstick(*key, 200.0, 150.0, 20.0)
        for key in {yardsticks.key_of(k.result) for k in kept}
    }
    return page(Book(Shelf(kept), yardsticks=known, **parts), question)


def check_short(text: str) -> None:
    assert len(re.findall(r"\S*\w\S*", text)) <= 900
    assert [s for s in sentences(text) if len(s.split()) >= 30] == []


# ---- other kernels ------------------------------------------------------------------------------

KERNELS = {
    "neural-malats": (90.0, {"lr": 0.05}),
    "neural-hmcts": (100.0, {"lr": 0.2, "leapfrog": 5}),
    "neural-ulmcts": (120.0, {"lr": 0.1}),
    "neural-svrglmcts": (180.0, {"lr": 0.05}),
}


def kernels(testbeds: Sequence[str] = ("adult", "magic", "mushroom", "shuttle")) -> list[Made]:
    runs = []
    for i, testbed in enumerate(testbeds):
        runs += [run("neural-lmcts", 100.0, testbed, i, lr=0.05)]
        runs += [run("neural-lmcts", 110.0, testbed, 10 + i, lr=0.005)]
        for j, (agent, (mean, own)) in enumerate(KERNELS.items()):
            made = run(agent, mean, testbed, 20 + 10 * j + i, **own)
            if agent in ("neural-malats", "neural-hmcts"):
                accepted = np.linspace(0.0, 0.9 + 0.02 * i, 3) * np.ones((SEEDS, 1))
                made = dataclasses.replace(made, health={"acceptance": accepted})
            runs.append(made)
    return [("question-kernels-neural", r) for r in runs]


def test_kernels_stand_beside_langevin_steps() -> None:
    text = told(network_kernels.QUESTION, kernels())
    where = "of 4 pairs on adult, magic, mushroom and shuttle regret is"
    assert f"- `neural-malats` beside `neural-lmcts`: {where} lower in 4 and higher in 0" in text
    assert f"- `neural-hmcts` beside `neural-lmcts`: {where} lower in 0 and higher in 0" in text
    assert f"- `neural-ulmcts` beside `neural-lmcts`: {where} lower in 0 and higher in 4" in text
    assert f"its own step beside the paper's: {where} lower in 4 and higher in 0" in text
    assert "| `neural-lmcts`, the paper's step | 110" in text
    assert re.search(r"\| `neural-svrglmcts` \| (179|180)\.\d† \(", text)
    # The second half of a rise to 90 % and to 96 %.
    assert re.search(r"\| `neural-malats` \| .* \| 68 to 72 % \|", text)
    check_short(text)


def test_kernels_are_judged_as_far_as_they_were_run() -> None:
    asked = [Asked("question-kernels-neural", "adult", "neural-lmcts", 200, False)]
    nothing = told(network_kernels.QUESTION, [], asked=asked)
    assert "Not run yet: 200 of the 200 runs of `question-kernels-neural`." in nothing
    assert "Nothing can be said before it is run." in nothing and "Regrets" not in nothing
    whole = kernels(("magic",))
    for end in range(1, len(whole)):
        text = told(network_kernels.QUESTION, whole[:end], asked=asked)
        assert text.count("| `neural-") >= end
    alone = told(network_kernels.QUESTION, [m for m in whole if m[1].agent == "neural-hmcts"])
    assert "`neural-hmcts` beside `neural-lmcts`: not enough seeds yet." in alone


# ---- risky mushrooms ----------------------------------------------------------------------------


def risky() -> list[Made]:
    made: list[tuple[str, float, dict[str, Any]]] = [
        ("neural-lmcts", 160.0, {"temperature": 1.0}),
        ("neural-lmcts", 100.0, {"temperature": 400.0}),
        *(("neural-fglmcts", 160.0, {"temperature": 1.0, "lam": w}) for w in (0.05, 0.5)),
        ("neural-fglmcts", 120.0, {"temperature": 1.0, "lam": 5.0}),
        ("neural-fglmcts", 130.0, {"temperature": 400.0, "lam": 5.0}),
        # Their temperature and weight are of another kind, or idle.
        ("neural-ts", 170.0, {"temperature": 1.0, "lam": 1.0}),
        ("fg-neural-ts", 170.0, {"temperature": 1.0, "lam": 1.0}),
        ("neural-ucb", 140.0, {}),
        ("neural-eps-greedy", 155.0, {}),
        ("neural-linear", 155.0, {"temperature": 1.0}),
    ]
    return [
        ("question-mushroom-risky", run(agent, mean, "mushroom-risky", i, **own))
        for i, (agent, mean, own) in enumerate(made)
    ]


def test_risky_mushrooms() -> None:
    text = told(risky_mushrooms.QUESTION, risky())
    assert "of 5 pairs on mushroom-risky regret is lower in 1 and higher in 1 (Holm" in text
    assert "in the units of the rewards, beside the paper's: of 1 pair on mushroom-risky" in text
    assert "beside `neural-lmcts`: of 4 pairs on mushroom-risky regret is lower in 3 and" in text
    assert "Of 11 settings, 7 do not beat the best fixed arm." in text
    assert "| `neural-fglmcts` | λ = 5, temperature × 400 | 130" in text
    assert re.search(r"\| `neural-lmcts` \|  \| 1(59|60)\.\d† \(", text)
    check_short(text)
    nothing = told(risky_mushrooms.QUESTION, [])
    assert "Nothing can be said before it is run." in nothing and "| agent |" not in nothing
    for end in range(1, 11):
        assert told(risky_mushrooms.QUESTION, risky()[:end]).count("| `") >= end


# ---- weights that fall --------------------------------------------------------------------------


def neural_tables(testbeds: Sequence[str] = DATA) -> list[Made]:
    """Everything that the page on networks can have."""
    runs: list[Made] = []
    constant = {"lam_schedule": "constant"}
    for i, testbed in enumerate(testbeds):
        for j, (agent, mean) in enumerate(
            (
                ("neural-lmcts", 100.0),
                ("neural-fglmcts", 110.0),
                ("neural-sfglmcts", 111.0),
                ("neural-ts", 120.0),
                ("fg-neural-ts", 130.0),
                ("sfg-neural-ts", 131.0),
                ("neural-ucb", 140.0),
                ("neural-eps-greedy", 150.0),
            )
        ):
            own: dict[str, Any] = constant | {"lam": 0.1, "b": 10.0} if "fg" in agent else {}
            made = run(agent, mean, testbed, 10 * i + j, stuck=3 if i < 2 else 0, **own)
            runs.append((f"data-{testbed}", made))
    for i, testbed in enumerate(("adult", "magic", "mushroom", "shuttle")):
        for lam in (0.01, 0.05, 0.1, 0.5):
            for b in (1.0, 10.0):
                settings = constant | {"lam": lam, "b": b}
                made = run("neural-fglmcts", 100.0 + 50 * lam + b, testbed, 200 + i, **settings)
                runs.append(("question-lambda-neural", made))
        falls = {"lam": 1.0, "lam_schedule": "sqrt", "b": 10.0}
        made = run("neural-fglmcts", 104.0, testbed, 300 + i, **falls)
        runs.append(("question-falling-neural", made))
    return runs


def counted(text: str, family: str) -> list[str]:
    """The row of a family: pairs, lower / higher three times, and what could not be judged."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {family} |")]
    return line.split(" | ")[1:6]


def test_networks_with_a_bonus_stand_beside_none_and_a_falling_weight_beside_both() -> None:
    text = told(bonus_neural.QUESTION, neural_tables())
    assert counted(text, "Langevin agents, λ_s = 1/√s") == ["4", "0 / 4", "0 / 4", "0 / 4", "0"]
    assert counted(text, "λ_s = 1/√s beside the paper's λ") == ["4", *["4 / 0"] * 3, "0"]
    # At b = 10 the smoothed agent is the plain one: data sets count once.
    ten = str(len(DATA))
    assert counted(text, "Langevin agents, the paper's λ and b")[:2] == [ten, f"0 / {ten}"]
    assert "1/√s, on adult: 3 of" not in text and "`neural-sfglmcts`" not in text
    # Ten pairs of both kinds of agents, 32 of the sweep and four of the weight that falls.
    assert "The bonus beside none: of 56 pairs regret is lower in 0 and higher in 56 (30" in text
    assert re.search(r"\| adult \| 100\.\d \(.*\) \| 110\.\d \(.*\) \| 1(49|50)\.\d† \(", text)
    assert re.search(r"\| adult \| .*\| \+3[67]\.\d % \[", text)
    check_short(text)
    without = [m for m in neural_tables() if m[0] != "question-falling-neural"]
    assert "λ_s = 1/√s" not in told(bonus_neural.QUESTION, without)
    nothing = [(study, first(r, 19)) for study, r in neural_tables(("adult",))]
    assert "The bonus beside none: not enough seeds yet." in told(bonus_neural.QUESTION, nothing)


def test_a_pair_of_two_families_is_one_pair() -> None:
    """The same run in the paper's table and in the sweep."""
    made = [m for m in neural_tables(("adult",)) if m[0].startswith("data-")]
    alone = told(bonus_neural.QUESTION, made)
    (paper,) = [m for m in made if m[1].agent == "neural-fglmcts"]
    twice = told(bonus_neural.QUESTION, [*made, ("question-lambda-neural", paper[1])])
    assert counted(twice, "Langevin agents, λ and b swept")[0] == "1"
    for text in (alone, twice):
        assert "The bonus beside none: of 2 pairs regret is lower in 0 and higher in 2 (30" in text


def test_why_a_data_set_is_not_judged_is_said() -> None:
    """Another temperature than the plain agent's is no lack of seeds."""
    made = [
        (study, dataclasses.replace(r, settings={**r.settings, "beta": 2.0}))
        if r.testbed == "covertype" and "fg" in r.agent
        else (study, dataclasses.replace(r, settings={**r.settings, "beta": 1.0}))
        for study, r in neural_tables()
        if r.testbed != "mnist"
    ]
    text = told(bonus_neural.QUESTION, made)
    assert "No run without the bonus at the same temperature, not judged: covertype." in text
    assert "Fewer than 20 seeds so far, not judged: mnist." in text


def test_weights_that_fall_in_logistic_bandits() -> None:
    constant, falls = ({"lam_schedule": name} for name in ("constant", "sqrt"))
    runs = [
        run("fglmcts", 100.0 + 50 * lam, "logistic-20", i, lam=lam, **constant)
        for i, lam in enumerate((0.0, 0.01, 0.1, 0.5))
    ]
    runs += [
        run("fglmcts", 100.0 + 10 * (lam - 0.5), "logistic-20", 9 + i, lam=lam, **falls)
        for i, lam in enumerate((0.1, 0.3, 1.0, 3.0))
    ]
    made = [("question-falling-logistic", r) for r in runs]
    text = told(bonus_logistic.QUESTION, made)
    assert "rounds: of 4 pairs on logistic-20 regret is lower in 2 and higher in 2 (Holm" in text
    assert "A constant one, over 3,000 rounds: of 3 pairs on logistic-20 regret is lower" in text
    text = told(bonus_logistic.QUESTION, made[4:])
    assert "over 3,000 rounds: not enough seeds yet." in text


@pytest.mark.parametrize("question", [network_kernels.QUESTION, risky_mushrooms.QUESTION])
def test_few_seeds_are_not_judged(question: Question) -> None:
    few = [(study, first(r, 19)) for study, r in (*kernels(), *risky())]
    text = told(question, few)
    assert "regret is lower in" not in text and "best fixed arm." not in text.split("## Regrets")[0]


def first(r: AgentResult, count: int) -> AgentResult:
    """The same with fewer seeds."""
    names = ("final_regret", "simple_regret", "best_arm_rate", "arm_counts", "curve", "ess")
    cut: dict[str, Any] = {name: getattr(r, name)[:count] for name in (*names, "diverged_at")}
    health = {name: values[:count] for name, values in r.health.items()}
    return dataclasses.replace(r, seeds=r.seeds[:count], health=health, **cut)
