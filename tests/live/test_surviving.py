"""Saved bandits and journals: whole or refused, exact on request, and safe against kills."""

import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import killed

import feelgood
from feelgood import FeelgoodError
from feelgood.live import bandit_files, journal
from feelgood.live.bandit_files import SavedBandit, saved_bytes, write_bandit

X = np.random.default_rng(3).normal(size=(100, 2)).astype(np.float32)


def played(**more: Any) -> feelgood.Bandit:
    """A bandit with some history: rewards learned, decisions that wait, an arm that went."""
    bandit = feelgood.Bandit("lints", ["a", "b", "c"], 2, seed=4, **more)
    for x in X[:20]:
        bandit.update(bandit.act(x).id, float(x[0]))
    bandit.act(X[:3])
    bandit.expire(bandit.waiting[0])
    bandit.remove_arm("b")
    return bandit


def same(one: feelgood.Bandit, other: feelgood.Bandit) -> bool:
    """Whether two bandits are the same to the last bit, but for where their records are."""
    a, b = one._state.saved(), other._state.saved()
    return a.manifest == b.manifest and all(
        np.array_equal(a.arrays[name], b.arrays[name]) for name in {**a.arrays, **b.arrays}
    )


def test_a_loaded_bandit_goes_on(tmp_path: Path) -> None:
    bandit, file = played(), tmp_path / "bandit.fg"
    bandit.save(file)
    exact = feelgood.Bandit.load(file, exact=True)
    assert same(bandit, exact) and exact.waiting == bandit.waiting
    forked, again = feelgood.Bandit.load(file), feelgood.Bandit.load(file)
    following = [bandit.act(x).arm for x in X]
    assert [exact.act(x).arm for x in X] == following
    # Three copies of 100 choices among two arms by chance are not the same.
    others = [[copy.act(x).arm for x in X] for copy in (forked, again)]
    assert following not in others and others[0] != others[1]
    assert not {*forked.waiting[2:]} & {*again.waiting[2:], *exact.waiting[2:]}
    exact.update(exact.waiting[0], 1.0)
    assert exact.version == bandit.version + 1
    with pytest.raises(FeelgoodError, match="was rewarded before"):
        again.update(5, 1.0)


def test_a_file_runs_nothing_and_is_the_same_for_the_same_bandit(tmp_path: Path) -> None:
    bandit = played()
    bandit.save(tmp_path / "a.fg")
    bandit.save(tmp_path / "b.fg")
    content = (tmp_path / "a.fg").read_bytes()
    assert content == (tmp_path / "b.fg").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.fg") as archive:
        assert all(name.endswith((".json", ".npy")) for name in archive.namelist())
        assert json.loads(archive.read("manifest.json"))["agent"] == "lints"


def damaged(content: bytes) -> dict[str, bytes]:
    rng = random.Random(0)
    out = {"nothing": b"", "foreign": b"PK\3\4 something else", "text": b"feelgood-bandit\n"}
    for i in range(20):
        at = rng.randrange(len(content))
        out[f"byte {at}"] = content[:at] + bytes([content[at] ^ (1 << i % 8)]) + content[at + 1 :]
        out[f"cut {i}"] = content[: rng.randrange(len(content))]
    return out


def test_damaged_foreign_and_newer_files_are_refused(tmp_path: Path) -> None:
    bandit, file = played(), tmp_path / "bandit.fg"
    bandit.save(file)
    content = file.read_bytes()
    for name, other in damaged(content).items():
        file.write_bytes(other)
        with pytest.raises(FeelgoodError) as caught:
            feelgood.Bandit.load(file)
        assert str(file) in str(caught.value) and "\n" not in str(caught.value), name
    file.write_bytes(content.replace(b"feelgood-bandit 2 ", b"feelgood-bandit 3 "))
    with pytest.raises(FeelgoodError, match="newer version"):
        feelgood.Bandit.load(file)
    with pytest.raises(FeelgoodError, match="cannot read"):
        feelgood.Bandit.load(tmp_path / "none.fg")
    with pytest.raises(FeelgoodError, match="no journal"):
        feelgood.Bandit.load(tmp_path)


def test_a_state_of_another_agent_is_refused(tmp_path: Path) -> None:
    bandit, file = played(), tmp_path / "bandit.fg"
    saved = bandit._state.saved()
    less = {name: array for name, array in saved.arrays.items() if name != "state/0"}
    for arrays in (
        {**saved.arrays, "state/0": saved.arrays["state/0"][:, :1]},
        {**less, "state/0": saved.arrays["state/0"].astype(np.float64)},
    ):
        write_bandit(file, SavedBandit(saved.manifest, arrays))
        with pytest.raises(FeelgoodError, match="does not have here"):
            feelgood.Bandit.load(file)
    write_bandit(file, SavedBandit({**saved.manifest, "agent": "lintss"}, saved.arrays))
    with pytest.raises(FeelgoodError, match="unknown agent"):
        feelgood.Bandit.load(file)


def test_files_of_an_older_schema_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file as schema 1 had it, made by hand: some entries were not there yet."""
    bandit = feelgood.Bandit("lints", ["a", "b", "c"], 2, seed=4)
    bandit.update(bandit.act(X[0]).id, 1.0)
    saved = bandit._state.saved()
    new = ("removed", "forget", "pending")
    manifest = {name: value for name, value in saved.manifest.items() if name not in new}
    with monkeypatch.context() as patch:
        patch.setattr(bandit_files, "SCHEMA", 1)
        (tmp_path / "old.fg").write_bytes(saved_bytes(SavedBandit(manifest, saved.arrays)))
    assert (tmp_path / "old.fg").read_bytes().startswith(b"feelgood-bandit 1 ")
    assert same(feelgood.Bandit.load(tmp_path / "old.fg", exact=True), bandit)


# ---- the journal ---------------------------------------------------------------------------


def test_a_journal_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    bandit = played(journal=folder)
    with pytest.raises(FeelgoodError, match="in use"):
        feelgood.Bandit.load(folder)
    with pytest.raises(FeelgoodError, match="there is a journal"):
        feelgood.Bandit("lints", 3, 2, journal=folder)
    bandit.learn(X[:2], ["a", "c"], [1.0, 2.0], [0.5, 1.0])
    bandit.update(bandit.waiting, [0.5, 0.5])
    plain = played()
    plain.learn(X[:2], ["a", "c"], [1.0, 2.0], [0.5, 1.0])
    plain.update(plain.waiting, [0.5, 0.5])
    bandit.close()
    again = feelgood.Bandit.load(folder, exact=True)
    assert same(again, plain) and [again.act(x).arm for x in X] == [plain.act(x).arm for x in X]
    again.close()
    with pytest.raises(FeelgoodError, match="closed"):
        again.learn(X[0], "a", 1.0)


def test_a_record_that_was_cut_off_is_left_out_and_damage_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    bandit = feelgood.Bandit("lints", ["a", "b", "c"], 2, seed=4, journal=folder)
    for x in X[:5]:
        bandit.update(bandit.act(x).id, 1.0)
    bandit.close()
    (records,) = folder.glob("records-*")
    content = records.read_bytes()
    records.write_bytes(content[:-3])
    with feelgood.Bandit.load(folder) as cut:
        assert cut.version == 4 and len(cut.waiting) == 1
    (records,) = folder.glob("records-*")
    records.write_bytes(content[:20] + b"?" + content[21:])
    with pytest.raises(FeelgoodError, match="damaged at byte 0"):
        feelgood.Bandit.load(folder)


def test_a_journal_takes_constant_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_LONG", 2_000)
    folder = tmp_path / "journal"
    with feelgood.Bandit(
        "lints", ["a", "b", "c"], 2, journal=folder, fsync="batched", pending=5
    ) as bandit:
        size = (folder / "state.fg").stat().st_size
        for x in np.tile(X, (6, 1)):
            bandit.update(bandit.act(x).id, 1.0)
            used = sum(file.stat().st_size for file in folder.iterdir())
            # The list of ended decisions grows, up to a limit.
            assert used < 2_000 + 8 * size + 20 * bandit.version
        assert len(list(folder.glob("records-*"))) == 1


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with feelgood.Bandit("lints", ["a", "b", "c"], 2, journal=tmp_path / "j") as bandit:
        one = bandit.act(X[0]).id
        before = bandit._state.saved()

        def full(file: int, content: bytes) -> None:
            os.write(file, content[:5])
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(journal, "_write", full)
            for call in (lambda: bandit.act(X[:3]), lambda: bandit.update(one, 1.0)):
                with pytest.raises(FeelgoodError, match="free some space"):
                    call()
        after = bandit._state.saved()
        assert after.manifest == before.manifest
        assert all(np.array_equal(after.arrays[n], before.arrays[n]) for n in before.arrays)
        bandit.update(one, 1.0)
        bandit.close()
    with feelgood.Bandit.load(tmp_path / "j") as again:
        assert again.version == 1 and not again.waiting


def test_a_state_that_cannot_be_saved_anew_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, saved: SavedBandit) -> None:
        raise FeelgoodError("no space")

    folder = tmp_path / "j"
    monkeypatch.setattr(journal, "_LONG", -(10**9))  # it is always time to save anew
    bandit = feelgood.Bandit("lints", ["a", "b", "c"], 2, journal=folder)
    with monkeypatch.context() as patch:
        patch.setattr("feelgood.live.recording.write_bandit", full)
        for x in X[:3]:
            bandit.learn(x, "a", 1.0)
        assert len(list(folder.glob("records-*"))) == 1
    bandit.close()
    with feelgood.Bandit.load(folder, exact=True) as again:
        assert again.version == 3
        with monkeypatch.context() as patch:
            patch.setattr("feelgood.live.recording.write_bandit", full)
            with pytest.raises(FeelgoodError, match="no space"):
                again.add_arm("d")
        with pytest.raises(FeelgoodError, match="was closed"):
            again.act(X[0])
    with feelgood.Bandit.load(folder) as whole:
        assert whole.version == 3 and whole.arms == ("a", "b", "c")


# ---- kills ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_a_kill_leaves_the_old_or_the_new_file(tmp_path: Path, kills: int) -> None:
    """A process writes two saved bandits in turn; a kill at a random moment leaves one, whole."""
    rng, bandit = random.Random(1), played()
    file, one, two = (tmp_path / f"{name}.fg" for name in ("file", "one", "two"))
    bandit.save(one)
    bandit.learn(X[0], "a", 1.0)
    bandit.save(two)
    good = {one.read_bytes(), two.read_bytes()}
    file.write_bytes(one.read_bytes())
    assert len(good) == 2
    found = []
    for _ in range(kills):
        killed(rng.uniform(0.0, 0.1), "save", file, one, two)
        found.append(file.read_bytes())
        assert found[-1] in good
    assert kills < 100 or len(set(found)) == 2


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_no_acknowledged_reward_is_lost(tmp_path: Path, kills: int) -> None:
    folder, rng = tmp_path / "journal", random.Random(2)
    feelgood.Bandit("lints", ["a", "b"], 2, journal=folder).close()
    rewarded: set[int] = set()
    for _ in range(kills):
        said = killed(rng.uniform(0.05, 0.4), "journal", folder)
        acted = {int(own) for kind, own in said if kind == "act"}
        mine = {int(own) for kind, own in said if kind == "reward"}
        with feelgood.Bandit.load(folder, exact=True) as bandit:
            ledger = bandit._state.ledger
            assert mine <= set(ledger.ended) and acted <= {*ledger.ended, *ledger.waiting}
            rewarded |= mine
            assert len(rewarded) <= bandit.version <= len(rewarded) + kills
