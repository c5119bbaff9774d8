"""A live bandit that writes its own log."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Command
from killing import killed

import feelgood
from feelgood import FeelgoodError
from feelgood.live.recording import Recorder
from feelgood.logs import event_log

X = np.random.default_rng(5).normal(size=(300, 2))
SHARED = np.random.default_rng(6).normal(size=(40, 3, 2))


def made(place: Path, agent: str = "lints", **more: Any) -> feelgood.Bandit:
    given = {"arms": ["a", "b", "c"], "features": 2, "seed": 2, "log": place / "log.arrow", **more}
    return feelgood.Bandit(agent, **given)


def test_decisions_and_rewards_are_logged_as_they_are(tmp_path: Path) -> None:
    with made(tmp_path) as bandit:
        decisions = [bandit.act(x) for x in X[:6]] + bandit.act(X[6:9])
        bandit.update(decisions[0].id, 1.5)
        bandit.update([d.id for d in decisions[1:4]], [0.0, 1.0, 2.0], [1.0, 2.0, 0.5])
        bandit.expire(decisions[4].id)
        masked = bandit.act(X[9], mask=["a", "c"])
        bandit.learn(X[0], "a", 1.0)  # of another log: it was no decision here
        decisions.append(masked)
        with pytest.raises(FeelgoodError, match="being written"):
            feelgood.EventLog(tmp_path / "log.arrow")
    events = feelgood.read_log(tmp_path / "log.arrow")
    table = events.table.to_pydict()
    assert not events.notes
    assert table["id"] == [d.id for d in decisions] and table["arm"] == [d.arm for d in decisions]
    assert table["arms"] == [list(d.arms) for d in decisions]
    assert table["probability"] == [d.probability for d in decisions]
    np.testing.assert_array_equal(np.array(table["context"], np.float32), X[:10].astype("f4"))
    assert all(list(d.pmf) == pmf for d, pmf in zip(decisions, table["pmf"], strict=True))
    assert table["reward"] == [1.5, 0.0, 1.0, 2.0, None, None, None, None, None, None]
    assert table["weight"][:4] == [1.0, 1.0, 2.0, 0.5]
    assert table["version"] == [0] * 9 + [4]
    with pytest.raises(FeelgoodError, match="was closed"):
        bandit.act(X[0])


def test_features_of_arms_are_those_of_the_arms_that_could_be_played(tmp_path: Path) -> None:
    more = {"features": None, "arm_features": 2}
    with made(tmp_path, "squarecb", **more) as bandit:
        bandit.act(SHARED[0])
        bandit.act(SHARED[1], mask=[False, True, True])
        bandit.remove_arm("a")
        bandit.act(SHARED[2][1:])
    rows = feelgood.read_log(tmp_path / "log.arrow").table["arm_features"].to_pylist()
    for row, want in zip(rows, (SHARED[0], SHARED[1][1:], SHARED[2][1:]), strict=True):
        np.testing.assert_array_equal(np.array(row, "f4"), want.astype("f4"))


def test_no_probability_is_logged_where_there_is_none(tmp_path: Path) -> None:
    with made(tmp_path, "lmcts") as bandit:
        bandit.act(X[0])
    table = feelgood.read_log(tmp_path / "log.arrow").table
    assert table["probability"].null_count == table["pmf"].null_count == 1


def test_a_log_goes_on_with_new_numbers(tmp_path: Path) -> None:
    """Another bandit, or a copy of an earlier one, adds to a log and repeats no id."""
    with made(tmp_path) as bandit:
        bandit.update(bandit.act(X[0]).id, 1.0)
        bandit.save(tmp_path / "early.fg")
        bandit.act(X[1:5])
    with made(tmp_path) as another:
        another.act(X[:3])
    log = feelgood.EventLog(tmp_path / "log.arrow", batch=10)
    with feelgood.Bandit.load(tmp_path / "early.fg", exact=True, log=log) as copy:
        copy.update(copy.act(X[0]).id, 2.0)
    log.close()
    events = feelgood.read_log(tmp_path / "log.arrow")
    assert events.table["id"].to_pylist() == list(range(9)) and not events.notes


def test_a_log_with_other_ids_is_refused_and_left_free(tmp_path: Path) -> None:
    with feelgood.EventLog(tmp_path / "log.arrow") as log:
        log.decision("one", arm="a", arms=["a", "b"], context=[1.0, 0.0])
    with pytest.raises(FeelgoodError, match="texts as ids"):
        made(tmp_path)
    with pytest.raises(FeelgoodError, match="is there twice"):
        made(tmp_path, arms=[1, "1"])
    feelgood.EventLog(tmp_path / "log.arrow").close()


def test_an_error_of_the_log_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the state, nor the journal, nor the log has what failed."""
    bandit = made(tmp_path, journal=tmp_path / "journal")
    one = bandit.act(X[0]).id
    before = bandit._state.saved()

    def full(self: Any, content: Any) -> None:
        raise FeelgoodError("cannot write (No space left on device): free some space.")

    with monkeypatch.context() as patch:
        patch.setattr(event_log.EventLog, "_write", full)
        for call in (lambda: bandit.act(X[:3]), lambda: bandit.update(one, 1.0)):
            with pytest.raises(FeelgoodError, match="No space"):
                call()
    after = bandit._state.saved()
    assert after.manifest == before.manifest
    assert all(np.array_equal(after.arrays[n], before.arrays[n]) for n in before.arrays)
    bandit.close()
    with feelgood.Bandit.load(tmp_path / "journal", log=tmp_path / "log.arrow") as again:
        assert again.waiting == (one,) and again.version == 0
        again.update(one, 0.25)
    events = feelgood.read_log(tmp_path / "log.arrow")
    assert events.table["reward"].to_pylist() == [0.25] and not events.notes


@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_kill_between_journal_and_log_leaves_no_gap(tmp_path: Path, kind: str) -> None:
    """The journal has the rewards, the log has not: whoever goes on completes it."""
    bandit = made(tmp_path, journal=tmp_path / "journal")
    ids = [decision.id for decision in bandit.act(X[:5])]
    bandit.update(ids[0], 0.5)
    recorder = bandit._recorder
    assert isinstance(recorder, Recorder) and recorder.journal is not None
    paid = {own: float(own) for own in (ids[1:2] if kind == "one" else ids[1:4])}
    for own, reward in paid.items():  # what `update` does before the kill
        recorder.journal.rewarded(own, reward, 2.0)
    recorder.journal.commit()
    bandit.close()
    with feelgood.Bandit.load(tmp_path / "journal", log=tmp_path / "log.arrow") as again:
        assert again.version == 1 + len(paid)
    events = feelgood.read_log(tmp_path / "log.arrow")
    want = [0.5, *paid.values()] + [None] * (4 - len(paid))
    assert events.table["reward"].to_pylist() == want and not events.notes
    assert events.table["weight"].to_pylist()[: 1 + len(paid)] == [1.0] + [2.0] * len(paid)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [15])
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path, kills: int) -> None:
    folder, log, rng = tmp_path / "journal", tmp_path / "log.arrow", random.Random(4)
    feelgood.Bandit("lints", ["a", "b"], 2, journal=folder, log=log).close()
    acted, rewarded = set(), set()
    for _ in range(kills):
        said = killed(rng.uniform(0.0, 0.01), "log", folder, log, lines=rng.randrange(2, 60))
        acted |= {int(own) for what, own in said if what == "act"}
        rewarded |= {int(own) for what, own in said if what == "reward"}
    with feelgood.Bandit.load(folder, log=log) as bandit:
        version = bandit.version
    table = feelgood.read_log(log).table
    ids = table["id"].to_pylist()
    have = {own for own, r in zip(ids, table["reward"].to_pylist(), strict=True) if r is not None}
    assert acted <= set(ids) and rewarded <= have
    assert len(rewarded) >= kills and len(have) == version  # the log has what was learned


@pytest.mark.slow
def test_commands_read_what_a_live_bandit_wrote(command: Command, tmp_path: Path) -> None:
    with made(tmp_path, "epsgreedy", settings={"epsilon": 0.5}) as bandit:
        for x in X:
            decision = bandit.act(x)
            bandit.update(decision.id, float(x[0] > 0) + "abc".index(decision.arm))
    log = str(tmp_path / "log.arrow")
    judged = command("evaluate", log, "uniform", "linucb")
    assert judged.code == 0 and "linucb" in judged.out
    page = tmp_path / "page.html"
    reported = command("report", log, "--out", str(page))
    assert reported.code == 0 and "<html" in page.read_text(encoding="utf-8")
