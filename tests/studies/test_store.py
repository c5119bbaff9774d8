"""A store that was damaged, meddled with, or may only be read: nothing is silently wrong."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import feelgood.studies.locks as locks_module
from feelgood import FeelgoodError
from feelgood.cli import main
from feelgood.core.parquet import read_parquet
from feelgood.report import page, rendering
from feelgood.studies import Store, Study, plan_cells, run_study
from feelgood.studies.batches import Claim, plan
from feelgood.studies.locks import Lock
from feelgood.studies.status import status

FILE = 'name = "s"\nstore = "store"\ntestbeds = ["linear-20"]\nagents = ["uniform"]\nrounds = 40\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    """Three cells of a cheap agent."""
    cells = plan_cells("linear-20", "uniform", rounds=40, seeds=30)
    study = Study("s", tuple(cells))
    folder = tmp_path_factory.mktemp("made") / "store"
    assert run_study(study, folder, workers=1).missing == 0
    return study, folder


@pytest.fixture
def copied(made: tuple[Study, Path], tmp_path: Path) -> tuple[Study, Store, list[str]]:
    """A copy to damage, beside a study file, and what it says."""
    study, folder = made
    shutil.copytree(folder, tmp_path / "store")
    (tmp_path / "s.toml").write_text(FILE + "seeds = 30\n")
    said: list[str] = []
    return study, Store(tmp_path / "store", notify=said.append), said


def flip(file: Path, place: int = -50) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["feelgood", *words])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


# ---- what is left out is said ---------------------------------------------------------------


def test_damaged_cells_are_named_by_all_that_reads_a_store(
    copied: tuple[Study, Store, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, store, said = copied
    victim = store.file(study.cells[1].id)
    flip(victim)
    (result,) = store.results()
    assert len(result.seeds) == 20
    assert len(said) == 1
    assert f"1 of 3 cells are left out, the first {victim.name} (damaged: " in said[0]
    (result,) = store.results(study.cells)
    assert store.table(study.cells).num_rows == 20
    assert len(said) == 3
    (line,) = status(study, store)
    assert (line.done, line.running, line.missing) == (2, 0, 1)

    # What draws takes long and is tested elsewhere.
    monkeypatch.setattr(page, "_vega", lambda: "")
    monkeypatch.setattr(rendering, "render", lambda *words: b"")
    folder = store.path.parent
    out = folder / "out.csv"
    for words in (
        ("report", str(store.path), "--out", str(folder / "page.html")),
        ("plot", str(store.path), "--out", str(folder / "curves.svg")),
        ("study", "export", str(folder / "s.toml"), "--format", "csv", "--out", str(out)),
        ("study", "show", str(folder / "s.toml")),
    ):
        code, _, errors = command(monkeypatch, capsys, *words)
        assert code == 0
        assert "1 of 3 cells are left out" in errors, words
    assert "1 of 3 cells are left out" in (folder / "page.html").read_text()
    assert victim.exists(), "reading changes nothing"


def test_a_foreign_file_is_named_and_left_alone(copied: tuple[Study, Store, list[str]]) -> None:
    _, store, said = copied
    foreign = store.cells_folder / "mine.parquet"
    pq.write_table(pa.table({"x": [1]}), foreign)
    (result,) = store.results()
    assert len(result.seeds) == 30
    assert "not cells of this store" in said[0] and "mine.parquet" in said[0]
    # One that bears a cell's name is no cell either.
    shutil.copy(foreign, store.file("0" * 24))
    assert len(store.results()[0].seeds) == 30
    assert f"{'0' * 24}.parquet (damaged: " in said[1]


def test_a_file_without_a_line_must_hold_what_its_name_says(
    copied: tuple[Study, Store, list[str]],
) -> None:
    study, store, _ = copied
    first, second, third = (store.file(cell.id) for cell in study.cells)
    lines = store.manifest.read_bytes().splitlines(keepends=True)
    store.manifest.write_bytes(lines[0])
    shutil.copy(second, first)
    table = read_parquet(third.read_bytes())
    pq.write_table(table.slice(0, 5), third)
    assert list(store.look().found) == [study.cells[1].id]
    assert {damage.file for damage in store.verify()} == {first, third}
    assert list(store.checksums()) == [study.cells[1].id], "the sound one got its line"


def test_a_file_that_cannot_be_read_is_not_damaged(
    copied: tuple[Study, Store, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, store, said = copied
    victim = store.file(study.cells[0].id)
    real = Path.read_bytes

    def denied(path: Path) -> bytes:
        if path == victim:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(FeelgoodError, match=r"cannot read .*Permission denied\): make it readable"):
        store.verify()
    assert victim.exists()
    assert len(store.results()[0].seeds) == 20
    assert "(cannot be read: Permission denied)" in said[0]


# ---- the manifest ---------------------------------------------------------------------------


def test_any_bad_byte_of_the_header_loses_nothing(copied: tuple[Study, Store, list[str]]) -> None:
    study, store, said = copied
    whole = store.manifest.read_bytes()
    header = whole.index(b"\n") + 1
    for place in range(header):
        store.manifest.write_bytes(whole)
        flip(store.manifest, place)
        again = Store(store.path, notify=said.append)
        assert len(again.results()[0].seeds) == 30
    store.manifest.unlink()
    again = Store(store.path)
    (damage,) = again.verify()
    assert str(damage) == f"{store.manifest} is damaged: it was made again from the cells."
    assert sorted(store.manifest.read_bytes().splitlines()) == sorted(whole.splitlines())
    assert not again.verify() and not said
    assert again.look(study.cells).found.keys() == {cell.id for cell in study.cells}


def test_a_manifest_that_cannot_be_read_gets_one_sentence(
    copied: tuple[Study, Store, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store, _ = copied
    real = Path.open

    def denied(path: Path, *words: object, **options: object) -> object:
        if path == store.manifest:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *words, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(FeelgoodError, match=r"cannot read .*manifest.jsonl \(Permission denied\)"):
        Store(store.path)


def test_a_path_that_is_too_long_gets_one_sentence(tmp_path: Path) -> None:
    for create in (True, False):
        with pytest.raises(FeelgoodError, match=r"File name too long\): choose a shorter path"):
            Store(tmp_path / ("x" * 300), create=create)


# ---- locks, work and what kills leave -------------------------------------------------------


def test_a_file_system_without_locks_gets_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*words: object, **options: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks_module.filelock.FileLock, "acquire", refuse)
    with pytest.raises(FeelgoodError, match="a file system without locks"):
        Store(tmp_path / "s")


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    """Also when that is killed; another process sees it held until then."""
    hold = (
        "import sys; from pathlib import Path; from feelgood.studies.locks import Lock; "
        "lock = Lock(Path(sys.argv[1])); assert lock.take(wait=False); print('held', flush=True); "
        "input()"
    )
    lock = Lock(tmp_path / "lock")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(lock.path)], stdin=pipe, stdout=pipe, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not lock.take(wait=False)
        holder.send_signal(signal.SIGKILL)
    assert lock.take(wait=False)
    lock.release()


def test_what_kills_left_is_removed(copied: tuple[Study, Store, list[str]]) -> None:
    study, store, _ = copied
    more = plan_cells("linear-20", "uniform", rounds=40, seeds="30:40")
    (batch,) = plan(store, more, "cpu", ())
    claim = Claim(store, batch.id)
    assert claim.take()
    orphans = [
        store.path / ".manifest.jsonl.77.tmp",
        store.cells_folder / f".{study.cells[0].id}.parquet.77.tmp",
        store.work_folder / ".plan-abc.jsonl.77.tmp",
        store.work_folder / ("a" * 24) / "0.npz",
        store.work_folder / batch.id / ".0.npz.77.tmp",
    ]
    for file in orphans:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
    assert [b.id for b in plan(store, [*study.cells, *more], "cpu", ())] == [batch.id]
    assert [file.exists() for file in orphans] == [False, False, False, False, True]
    claim.release()
    assert claim.take()
    assert not orphans[-1].exists()
    assert not orphans[-2].parent.exists()
    claim.release()
    # Once its cells are there, nothing is left of the batch.
    shutil.copy(store.file(study.cells[0].id), store.file(more[0].id))
    assert plan(store, [*study.cells, *more], "cpu", ()) == []
    assert sorted(p.name for p in store.work_folder.iterdir()) == ["store.lock"]


def test_nothing_in_a_store_is_imported(tmp_path: Path) -> None:
    """Plans hold names of cells; an older one that names a plug-in is not looked at."""
    store = Store(tmp_path / "s")
    cells = plan_cells("linear-20", "uniform", rounds=40, seeds=10)
    planted = store.work_folder / ("b" * 24)
    planted.mkdir()
    evil = tmp_path / "evil.py"
    evil.write_text("raise SystemExit('imported')")
    text = {"cells": [cell.to_json() for cell in cells], "plugins": [str(evil)]}
    (planted / "plan.json").write_text(json.dumps(text))
    batches = plan(store, cells, "cpu", ("of_the_study",))
    assert [batch.plugins for batch in batches] == [("of_the_study",)]
    assert [b.plugins for b in plan(store, cells, "cpu", ("moved",))] == [("moved",)]
    assert not any(b"evil" in p.read_bytes() for p in store.work_folder.glob("*.jsonl"))


@pytest.mark.parametrize("kind", ["read-only", "denied"])
def test_show_on_a_store_that_may_only_be_read(
    copied: tuple[Study, Store, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    _, store, _ = copied
    (store.path.parent / "s.toml").write_text(FILE + "seeds = 40\n")
    more = plan_cells("linear-20", "uniform", rounds=40, seeds="30:40")
    (batch,) = plan(store, more, "cpu", ())
    (store.work_folder / batch.id).mkdir()
    number = errno.EROFS if kind == "read-only" else errno.EACCES
    real = os.open

    def deny(path: object, flags: int, *rest: int, **options: object) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, flags, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", deny)
    code, out, errors = command(
        monkeypatch, capsys, "study", "show", str(store.path.parent / "s.toml")
    )
    assert code == 0, errors
    assert "3 of 4 cells done" in out
    assert "may only be read: what is running now counts as missing" in errors
