"""Bad input to a live bandit: one sentence each, nothing lost, the state unchanged."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feelgood
from feelgood import FeelgoodError

NAN, INF = float("nan"), float("inf")
GOOD = [0.5, -0.5]
Call = Callable[[feelgood.Bandit], Any]


def contexts() -> dict[str, Any]:
    return {
        "NaN": [NAN, 1.0],
        "infinite": [INF, 1.0],
        "minus infinite": [1.0, -INF],
        "huge": [1e30, 1.0],
        "beyond double": [10**400, 1.0],
        "too short": [1.0],
        "too long": [1.0, 2.0, 3.0],
        "empty": [],
        "a number": 1.0,
        "None": None,
        "text": "hello",
        "texts": ["a", "b"],
        "None inside": [None, 1.0],
        "ragged": [[1.0], [1.0, 2.0]],
        "three axes": np.zeros((1, 1, 2)),
        "a batch too wide": np.zeros((3, 3)),
        "a batch with NaN": [[0.0, 1.0], [NAN, 0.0]],
        "complex": np.array([1j, 0.0]),
        "objects": [object(), 1.0],
        "a dictionary": {"a": 1.0},
    }


def masks() -> dict[str, Any]:
    return {
        "nothing allowed": [False, False, False],
        "no names": [],
        "too short": [True, False],
        "too long": [True] * 4,
        "an unknown arm": ["a", "z"],
        "a number": 3,
        "text": "a",
        "numbers": [1, 0, 1],
        "floats": np.array([0.5, 0.5, 0.0]),
        "an empty set": set(),
        "a removed arm": ["gone"],
    }


def rewards() -> dict[str, Any]:
    return {
        "NaN": NAN,
        "infinite": INF,
        "huge": 1e30,
        "huge whole": 10**400,
        "text": "1.0",
        "None": None,
        "a list": [1.0],
        "complex": 1j,
        "an array": np.ones(2),
        "an object": object(),
    }


def weights() -> dict[str, Any]:
    return {"NaN": NAN, "0": 0.0, "negative": -1.0, "huge": 1e12, "text": "1", "infinite": INF}


def ids() -> dict[str, Any]:
    return {
        "unknown": 99,
        "negative": -1,
        "text": "0",
        "None": None,
        "a float": 0.0,
        "a truth value": True,
        "rewarded": 0,
        "expired": 1,
        "of another copy": 5 << 40,
    }


def calls() -> dict[str, Call]:
    """Everything that can be said wrongly; decisions 2 to 9 wait, 0 was rewarded, 1 expired."""
    out: dict[str, Call] = {}
    for name, x in contexts().items():
        out[f"act: {name}"] = lambda b, x=x: b.act(x)
        out[f"pmf: {name}"] = lambda b, x=x: b.pmf(x)
        if not name.startswith("a batch"):
            out[f"learn: {name}"] = lambda b, x=x: b.learn(x, "a", 1.0)
    for name, mask in masks().items():
        out[f"act, mask: {name}"] = lambda b, m=mask: b.act(GOOD, mask=m)
        out[f"pmf, mask: {name}"] = lambda b, m=mask: b.pmf(GOOD, mask=m)
    for name, reward in rewards().items():
        out[f"update, reward: {name}"] = lambda b, r=reward: b.update(2, r)
        out[f"learn, reward: {name}"] = lambda b, r=reward: b.learn(GOOD, "a", r)
    for name, weight in weights().items():
        out[f"update, weight: {name}"] = lambda b, w=weight: b.update(2, 1.0, w)
        out[f"learn, weight: {name}"] = lambda b, w=weight: b.learn(GOOD, "a", 1.0, w)
    for name, own in ids().items():
        out[f"update, id: {name}"] = lambda b, i=own: b.update(i, 1.0)
        if own is not None:
            out[f"expire, id: {name}"] = lambda b, i=own: b.expire(i)
    return out | {
        "the same id twice": lambda b: b.update([2, 2], [1.0, 1.0]),
        "one bad id among good ones": lambda b: b.update([2, 3, 99], [1.0] * 3),
        "one bad reward among good ones": lambda b: b.update([2, 3], [1.0, NAN]),
        "one bad weight among good ones": lambda b: b.update([2, 3], [1.0, 1.0], [1.0, -1.0]),
        "too few rewards": lambda b: b.update([2, 3], [1.0]),
        "one reward for many": lambda b: b.update([2, 3], 1.0),
        "too many weights": lambda b: b.update([2], [1.0], [1.0, 1.0]),
        "an unknown arm": lambda b: b.learn(GOOD, "z", 1.0),
        "a removed arm": lambda b: b.learn(GOOD, "gone", 1.0),
        "no arm": lambda b: b.learn(GOOD, None, 1.0),
        "a list as an arm": lambda b: b.learn(GOOD, ["a"], 1.0),
        "a batch and one arm": lambda b: b.learn([GOOD, GOOD], "a", [1.0, 1.0]),
        "a batch and one reward": lambda b: b.learn([GOOD, GOOD], ["a", "b"], 1.0),
        "expire nothing": lambda b: b.expire(),
        "expire both": lambda b: b.expire(2, older_than=1.0),
        "expire by NaN": lambda b: b.expire(older_than=NAN),
        "expire by text": lambda b: b.expire(older_than="1"),
        "an arm that is there": lambda b: b.add_arm("a"),
        "an arm without a name": lambda b: b.add_arm(None),
        "remove an unknown arm": lambda b: b.remove_arm("z"),
        "remove an arm twice": lambda b: b.remove_arm("gone"),
        "save nowhere": lambda b: b.save("/dev/null/bandit.fg"),
    }


@pytest.fixture(scope="module")
def bandit() -> feelgood.Bandit:
    live = feelgood.Bandit("lints", ["a", "gone", "b", "c"], 2, seed=3)
    made = live.act([GOOD] * 10)
    live.update(made[0].id, 1.0)
    live.expire(made[1].id)
    live.remove_arm("gone")
    return live


def test_there_are_enough_cases() -> None:
    assert len(calls()) >= 100


@pytest.mark.parametrize("name", calls())
def test_one_sentence_and_nothing_changes(bandit: feelgood.Bandit, name: str) -> None:
    before = bandit._state.saved()
    with pytest.raises(FeelgoodError) as caught:
        calls()[name](bandit)
    sentence = str(caught.value)
    assert "\n" not in sentence and 20 < len(sentence) < 300, sentence
    assert sentence.endswith((".", "?")) and not re.search(r"[.!?] [A-Z]", sentence), sentence
    after = bandit._state.saved()
    assert after.manifest == before.manifest
    assert all(np.array_equal(after.arrays[n], before.arrays[n]) for n in before.arrays)


MAKING: dict[str, dict[str, Any]] = {
    "an unknown agent": {"agent": "lintz"},
    "no name of an agent": {"agent": 3},
    "an agent that must be told what rewards there may be": {"agent": "exact-ts"},
    "another one of those": {"agent": "exact-fgts"},
    "an unknown setting": {"settings": {"nose": 1.0}},
    "a bad setting": {"settings": {"noise": -1.0}},
    "one arm": {"arms": ["a"]},
    "the same arm twice": {"arms": ["a", "a"]},
    "text as arms": {"arms": "ab"},
    "an arm without a name": {"arms": ["a", None]},
    "no arms": {"arms": None},
    "no features": {"features": None},
    "both kinds of features": {"arm_features": 2},
    "no feature at all": {"features": 0},
    "half a feature": {"features": 1.5},
    "a negative seed": {"seed": -1},
    "text as a seed": {"seed": "0"},
    "no members": {"members": 0},
    "unknown rewards": {"rewards": "gaussian"},
    "forgetting everything": {"forget": 0.0},
    "forgetting without sums": {"agent": "fglmcts", "forget": 0.9},
    "no room to wait": {"pending": 0},
    "unknown fsync": {"fsync": "never", "journal": "j"},
}


@pytest.mark.parametrize("name", MAKING)
def test_a_bandit_that_cannot_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"agent": "lints", "arms": ["a", "b"], "features": 2, **MAKING[name]}
    with pytest.raises(FeelgoodError) as caught:
        feelgood.Bandit(**given)
    assert "\n" not in str(caught.value)


def test_a_weight_that_an_agent_cannot_honour() -> None:
    live = feelgood.Bandit("epsgreedy-tabular", ["a", "b"], 2)
    with pytest.raises(FeelgoodError, match="more than sums"):
        live.learn(GOOD, "a", 1.0, 2.0)
    assert live.version == 0
