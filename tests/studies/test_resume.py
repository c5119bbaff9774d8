"""A study survives anything: damaged files, a full disk, company; see test_torture.py for kills."""

import io
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from stored import arrays, assert_same_bytes

from feelgood.studies import Store, read_study

SMALL = """
rounds = 600
seeds = 4
testbeds = ["linear-20"]

[agents.lints]

[agents.lmcts]
beta = [1, 100]
"""
LARGE = f"""{SMALL.replace("600", "3000")}
[agents.fglmcts]
lam = 0.5
steps = 5

[agents.hmcts]
steps = 3
"""
ON_BOTH = pytest.mark.parametrize(
    "undisturbed",
    [pytest.param(SMALL, id="small"), pytest.param(LARGE, id="large", marks=pytest.mark.slow)],
    indirect=True,
)
ON_LARGE = pytest.mark.parametrize("undisturbed", [LARGE], ids=["large"], indirect=True)


def write_study(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "study.toml"
    file.write_text(text)
    return file


def command(file: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "feelgood", "study", "run", str(file), *options]


def run(file: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(file, *options), capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study run in one go."""
    file = write_study(tmp_path_factory.mktemp("undisturbed"), request.param)
    assert run(file).returncode == 0
    return file


@pytest.mark.slow  # the torture goes on with finished cells, too
@ON_LARGE
def test_finished_cells_are_not_run_again(undisturbed: Path) -> None:
    file = undisturbed
    store = Store(read_study(file).store, create=False)
    before = {p: p.stat().st_mtime_ns for p in store.cells_folder.iterdir()}
    done = run(file)
    assert done.returncode == 0
    assert {p: p.stat().st_mtime_ns for p in store.cells_folder.iterdir()} == before


@pytest.mark.slow  # the torture damages files, too
@ON_LARGE
def test_a_file_cut_in_half_is_named_set_aside_and_run_again(
    undisturbed: Path, tmp_path: Path
) -> None:
    file = write_study(tmp_path, undisturbed.read_text())
    assert run(file).returncode == 0
    store = Store(read_study(file).store, create=False)
    victim = sorted(store.cells_folder.iterdir())[0]
    whole = victim.read_bytes()
    victim.write_bytes(whole[: len(whole) // 2])
    others = {p: p.stat().st_mtime_ns for p in store.cells_folder.iterdir() if p != victim}
    done = run(file)
    assert done.returncode == 0
    assert f"{victim} is damaged" in done.stderr
    (kept,) = (store.path / "damaged").iterdir()
    assert kept.read_bytes() == whole[: len(whole) // 2]
    assert {p: p.stat().st_mtime_ns for p in others} == others
    # Alone in its batch now, the cell's numbers agree; its last bits need not.
    a, b = arrays(file)[victim.stem], arrays(undisturbed)[victim.stem]
    np.testing.assert_allclose(a["final_regret"], b["final_regret"], rtol=1e-3)


@ON_BOTH
def test_a_flipped_byte_is_found(undisturbed: Path, tmp_path: Path) -> None:
    source = Store(read_study(undisturbed).store, create=False)
    copy = tmp_path / "store"
    subprocess.run(["cp", "-r", str(source.path), str(copy)], check=True)
    store = Store(copy, create=False)
    victim = sorted(store.cells_folder.iterdir())[1]
    content = bytearray(victim.read_bytes())
    content[len(content) // 3] ^= 1
    victim.write_bytes(content)
    (damage,) = store.verify()
    assert damage.file == victim
    assert not victim.exists()


@pytest.mark.slow
@ON_BOTH
def test_two_processes_share_one_store(undisturbed: Path, tmp_path: Path) -> None:
    file = write_study(tmp_path, undisturbed.read_text())
    pair = [
        subprocess.Popen(command(file, "--workers", "1"), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in pair:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert_same_bytes(arrays(file), arrays(undisturbed))
    manifest = (read_study(file).store / "manifest.jsonl").read_text().splitlines()
    assert len(manifest) == 1 + len(arrays(file))


@pytest.mark.slow  # the torture fills disks, too
@ON_LARGE
def test_a_full_disk_stops_the_study_with_one_sentence(undisturbed: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tiny disk needs root")
    try:
        file = write_study(disk, LARGE)
        done = run(file)
        assert done.returncode == 2
        lines = [line for line in done.stderr.splitlines() if line.startswith("feelgood:")]
        assert len(lines) == 1
        assert "cannot write" in lines[0] and "free some space" in lines[0]
        assert "Traceback" not in done.stderr
        assert not Store(read_study(file).store, create=False).verify()
        # With room again the same command finishes, and the numbers are the same.
        grow = ["mount", "-o", "remount,size=64m", str(disk)]
        subprocess.run(grow, check=True, capture_output=True)
        assert run(file).returncode == 0
        assert_same_bytes(arrays(file), arrays(undisturbed))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True, capture_output=True)


MEASURED = """
rounds = 3000
seeds = 3
posterior_every = 700
testbeds = ["linear-20"]

[agents.lmcts]
beta = [1, 100]
steps = 20
"""


def _half_measured(store: Path) -> bool:
    """Whether some checkpoint holds measures of the posterior, but not yet all of them."""
    for file in store.glob("work/*/*.npz"):
        try:
            with np.load(io.BytesIO(file.read_bytes()[32:])) as saved:
                traces = saved["along"][3]  # the trace, of every chain and round
        except (OSError, ValueError, zipfile.BadZipFile):
            continue  # replaced while we read it
        if np.isfinite(traces).any() and not np.isfinite(traces).all():
            return True
    return False


@pytest.mark.slow  # the torture kills studies, too
def test_kill_9_between_two_measurements_of_the_posterior(tmp_path: Path) -> None:
    """What was measured before the kill is kept, bit for bit, and the rest is measured after it."""
    file, reference = tmp_path / "killed" / "study.toml", tmp_path / "whole" / "study.toml"
    for one in (file, reference):
        one.parent.mkdir()
        one.write_text(MEASURED)
    process = subprocess.Popen(
        command(file, "--checkpoint-every", "0", "--workers", "1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 300
    while not _half_measured(file.parent / "study-results"):
        assert process.poll() is None and time.monotonic() < until, "nothing to interrupt"
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not Store(read_study(file).store, create=False).present()
    assert run(file).returncode == 0
    assert run(reference).returncode == 0
    resumed, whole = arrays(file), arrays(reference)
    assert_same_bytes(resumed, whole)
    for cell, table in resumed.items():
        assert table["posterior_rounds"].to_pylist() == [[700, 1400, 2100, 2800, 3000]] * 3
        assert table["posterior"].equals(whole[cell]["posterior"])
