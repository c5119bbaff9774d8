"""Studies as they run on an accelerator: all chains together, cut by memory, resumed bit for bit.

There is none here: `PRETEND` makes the engine behave as if there were one.
"""

import datetime
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from stored import arrays, assert_same_bytes, children_of

from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.spec import Spec
from feelgood.core.testbed import TESTBEDS, Testbed
from feelgood.engine import device
from feelgood.engine import resuming as marks
from feelgood.engine.device import GIB, VARIABLE, memory_limit
from feelgood.engine.plan import chain_bytes, on_cores
from feelgood.engine.simulation import Outcome, simulate
from feelgood.studies.batches import CellBatch
from feelgood.studies.driver import Watcher, run_study
from feelgood.studies.engines import Event, LocalEngine, Note
from feelgood.studies.engines.engine import failure_in_words
from feelgood.studies.execute import execute
from feelgood.studies.folder_checkpoints import FolderCheckpoints
from feelgood.studies.planning import Study, plan_cells
from feelgood.testbeds import Linear

#: A plugin that says that there is an accelerator: one place is asked.
PRETEND = """
from feelgood.engine import device

device.on_accelerator = lambda: True
"""
SMALL = {"layers": "8", "batch": 8, "updates": 3}
ROUNDS = 700


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "on_accelerator", lambda: True)


def for_chains(policy: Policy, testbed: Testbed, chains: float) -> str:
    """The value of FEELGOOD_MEMORY into which so many chains fit."""
    return f"{chains * chain_bytes(policy, testbed.spec, ROUNDS) / GIB:.12f}"


# ---- checkpoints ----------------------------------------------------------------------------


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    saved = {"a": np.arange(7.0).reshape(7, 1), "b": np.asarray("text"), "c": np.asarray(3)}
    checkpoints = FolderCheckpoints(tmp_path)
    checkpoints.save(2, saved)
    found = FolderCheckpoints(tmp_path).load(2)
    assert found is not None and found.keys() == saved.keys()
    assert all(
        np.array_equal(found[k], saved[k]) and found[k].dtype == saved[k].dtype for k in saved
    )
    assert FolderCheckpoints(tmp_path).load(1) is None


class Kept(dict[int, dict[str, np.ndarray]]):
    """Checkpoints in memory, saved at every chance."""

    saves = 0
    load = dict.get

    def due(self, group: int) -> bool:
        return True

    def save(self, group: int, arrays: Mapping[str, np.ndarray]) -> None:
        self.saves += 1
        self[group] = dict(arrays)


@pytest.mark.parametrize("change", ["another version", "another layout", "none"])
def test_a_checkpoint_of_another_version_or_layout_counts_as_absent(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(kept: Kept) -> np.ndarray:
        uniform = AGENTS["uniform"].build()
        testbed = TESTBEDS["linear-20"].build()
        return simulate(testbed, uniform, rounds=30, seeds=[0], checkpoints=kept).final_regret

    kept = Kept()
    regret, before = play(kept), kept.saves
    if change == "another version":
        monkeypatch.setattr(marks, "version", lambda name: "0.0")
    elif change == "another layout":
        kept[0] = {name: a for name, a in kept[0].items() if not name.startswith("leaf.")}
        kept[0][marks.LAYOUT] = np.asarray("as it was")
    np.testing.assert_array_equal(play(kept), regret)
    assert (kept.saves == before) == (change == "none"), "what is finished is not saved again"


def test_the_seconds_of_a_resumed_cell_are_those_of_all_its_work(tmp_path: Path) -> None:
    (cell,) = plan_cells("linear-20", "uniform", rounds=600, seeds=1)
    batch = CellBatch((cell,))

    class Stop(Exception):
        """Ends the run in the middle."""

    def interrupt(count: int) -> None:
        raise Stop

    def now() -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    began = now()
    for _ in range(2):
        with pytest.raises(Stop):
            list(execute(batch, FolderCheckpoints(tmp_path, every=0.0), interrupt))
    idle, nap = now(), 0.3
    time.sleep(nap)  # time between two runs does not count
    ((_, result),) = execute(batch, FolderCheckpoints(tmp_path), lambda count: None)
    assert began < datetime.datetime.fromisoformat(result.provenance["started"]) < idle
    seconds = result.provenance["duration_s"]
    assert result.run_s + result.compile_s <= seconds <= (now() - began).total_seconds() - nap
    # Finished work keeps its seconds.
    ((_, again),) = execute(batch, FolderCheckpoints(tmp_path), lambda count: None)
    assert again.run_s > result.run_s / 2 and again.compile_s >= result.compile_s
    assert again.provenance["started"] == result.provenance["started"]


@pytest.mark.parametrize("where", [0, 40, -40])
def test_a_damaged_checkpoint_counts_as_absent(tmp_path: Path, where: int) -> None:
    FolderCheckpoints(tmp_path).save(0, {"a": np.zeros(1000)})
    file = tmp_path / "0.npz"
    content = bytearray(file.read_bytes())
    content[where] ^= 1
    file.write_bytes(content)
    assert FolderCheckpoints(tmp_path).load(0) is None
    file.write_bytes(content[:20])
    assert FolderCheckpoints(tmp_path).load(0) is None


# ---- the cut --------------------------------------------------------------------------------


class Stop(Exception):
    """Ends a run early."""


def stopping_after(chain_rounds: int) -> Callable[[int], None]:
    played = 0

    def progress(count: int) -> None:
        nonlocal played
        played += count
        if played >= chain_rounds:
            raise Stop

    return progress


def same(one: Outcome, other: Outcome) -> bool:
    pairs = zip(
        (one.curve, one.final_regret, one.arm_counts, one.health["gradients"]),
        (other.curve, other.final_regret, other.arm_counts, other.health["gradients"]),
        strict=True,
    )
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


@pytest.mark.slow
@pytest.mark.usefixtures("accelerator")
def test_a_run_cut_by_memory_goes_on_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = Linear(parameters=3, arms=3)
    policies = [AGENTS["neural-lmcts"].build({**SMALL, "beta": beta}) for beta in (10.0, 100.0)]
    monkeypatch.setenv(VARIABLE, for_chains(policies[0], testbed, 4.5))
    heard: list[str] = []

    def run(folder: Path | None, progress: Callable[[int], None] | None = None) -> Outcome:
        return simulate(
            testbed,
            policies,
            rounds=ROUNDS,
            seeds=[0, 1, 2],
            checkpoints=None if folder is None else FolderCheckpoints(folder, every=0.0),
            progress=progress,
            notify=heard.append,
        )

    undisturbed = run(None)
    assert "running them in 2 parts of 4" in heard[0]
    # The first part is finished and the second begun, then all is lost but the files.
    with pytest.raises(Stop):
        run(tmp_path, stopping_after(4 * ROUNDS + 4 * 200))
    assert len(list(tmp_path.glob("*.npz"))) == 2
    begun = shutil.copytree(tmp_path, tmp_path / "begun")
    played = []
    assert same(run(tmp_path, played.append), undisturbed)
    # What was played before counts at once, so that the bar goes on where it was.
    assert played[0] == 4 * ROUNDS
    assert sum(played) == 2 * 4 * ROUNDS

    # With another memory the parts are others: what was saved is nobody's, and nothing is mixed.
    monkeypatch.setenv(VARIABLE, for_chains(policies[0], testbed, 2.5))
    parts_of_two = run(None)
    played = []
    assert same(run(begun, played.append), parts_of_two)
    assert played[0] < ROUNDS


def test_progress_of_a_processor_is_not_gone_on_with_on_an_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single chain has the same shapes on both."""
    testbed = Linear(parameters=3, arms=3)
    policy = AGENTS["lints"].build({})

    def first_call() -> int:
        played: list[int] = []
        simulate(
            testbed,
            policy,
            rounds=300,
            seeds=[0],
            checkpoints=FolderCheckpoints(tmp_path),
            progress=played.append,
        )
        return played[0]

    assert first_call() < 300
    assert first_call() == 300  # all rounds are in the checkpoint
    monkeypatch.setattr("feelgood.engine.resuming.jax.default_backend", lambda: "gpu")
    assert first_call() < 300


@pytest.mark.parametrize("text", ["much", "-1", "0", "nan", "inf"])
def test_a_memory_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(FeelgoodError, match=f"{VARIABLE} = '{text}' is not a number of GiB"):
        memory_limit()


def test_a_device_without_memory_left_says_what_to_do() -> None:
    error = RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12345 bytes.")
    assert f"run it again with {VARIABLE} set to fewer GiB" in failure_in_words(error)
    assert failure_in_words(RuntimeError("else\nand more")) == "RuntimeError: else"
    assert failure_in_words(RuntimeError()) == "RuntimeError"
    assert failure_in_words(FeelgoodError("A sentence.")) == "A sentence."


# ---- workers --------------------------------------------------------------------------------


def test_workers_share_the_memory_of_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
    monkeypatch.delenv(name, raising=False)
    assert name not in LocalEngine()._environment()
    assert LocalEngine(workers=3)._environment()[name] == "0.2500"
    monkeypatch.setenv(name, "0.1")
    assert LocalEngine(workers=3)._environment()[name] == "0.1"


def test_what_a_worker_notes_is_told(tmp_path: Path) -> None:
    (cell,) = plan_cells("linear-20", "lints", rounds=10, seeds=1)
    heard: list[str] = []

    class Noting(LocalEngine):
        def start(self, store: Path) -> str:
            del store
            return "cpu"

        def submit(self, batch: CellBatch) -> None:
            self.batch = batch

        def wait(self, seconds: float) -> list[Event]:
            if heard:
                raise Stop
            return [Note(self.batch, "in 2 parts")]

    watcher = Watcher(noted=lambda batch, sentence: heard.append(f"{batch.label}: {sentence}"))
    with pytest.raises(Stop):
        run_study(Study("s", (cell,)), tmp_path, engine=Noting(), watcher=watcher)
    assert heard == ["lints on linear-20, 1 chains: in 2 parts"]


STUDY = """
rounds = 700
seeds = 3
testbeds = ["digits"]
plugins = ["pretend.py"]

[agents.neural-lmcts]
layers = "8"
batch = 16
updates = 10
beta = [10, 100]

[agents.neural-ts]
layers = "8"
batch = 16
updates = 10
"""


@pytest.mark.slow
def test_kill_9_of_a_neural_study_cut_by_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both processes are killed twice, in the middle of different parts."""
    policy = AGENTS["neural-lmcts"].build({"layers": "8", "batch": 16, "updates": 10})
    monkeypatch.setenv(VARIABLE, for_chains(policy, TESTBEDS["digits"].build({}), 2.5))

    def write(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "pretend.py").write_text(PRETEND)
        file = folder / "study.toml"
        file.write_text(STUDY)
        return file

    def command(file: Path) -> list[str]:
        options = ["--checkpoint-every", "0", "--workers", "1"]
        return [sys.executable, "-m", "feelgood", "study", "run", str(file), *options]

    reference = write("undisturbed")
    done = subprocess.run(command(reference), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "running them in 3 parts of 2, one after the other" in done.stderr

    file = write("killed")
    work = file.parent / "study-results" / "work"
    for kill in range(2):
        process = subprocess.Popen(command(file), stderr=subprocess.DEVNULL)
        seen = len(list(work.glob("*/0-*.npz")))
        while process.poll() is None and len(list(work.glob("*/0-*.npz"))) <= seen:
            time.sleep(0.01)
        assert process.poll() is None, f"kill {kill} came too late"
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
    resumed = subprocess.run(command(file), capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_bytes(arrays(file), arrays(reference))


# ---- memory of a processor ------------------------------------------------------------------


@pytest.mark.parametrize(("chains", "parts"), [(100, 2), (4.5, 3), (2.5, 5), (1.5, 5)])
def test_linear_agents_are_cut_by_memory_too(
    chains: float, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed-form agents on images need a matrix per arm: the same results in smaller groups."""
    testbed = Linear(parameters=6, arms=3)
    policy = AGENTS["lints"].build({})
    monkeypatch.setenv(VARIABLE, for_chains(policy, testbed, chains))
    heard: list[str] = []
    groups, workers = on_cores(
        *("any", chain_bytes(policy, testbed.spec, ROUNDS), memory_limit()),
        *(1, 5, 2, heard.append),
    )
    assert len(groups) == parts
    assert workers == (1 if chains < 2 else 2)
    assert bool(heard) == (chains < 5)
    if heard:
        assert f"no more than {int(chains)} run at once" in heard[0]
    assert workers * len(groups[0].seeds) <= chains


def test_a_linear_agent_too_large_for_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.5")
    with pytest.raises(FeelgoodError, match=r"one chain of this agent needs about 2\.1 GiB"):
        simulate(Wide(), AGENTS["lints"].build({}), rounds=10, seeds=[0])


class Wide(Linear):
    """As many features and arms as CIFAR-10 has."""

    @property
    def spec(self) -> Spec:
        return Spec(arms=10, dim=3072, shared=False)
