"""Batches in processes on this machine: one per core, or one for the accelerator."""

import contextlib
import dataclasses
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from feelgood.core.errors import FeelgoodError
from feelgood.engine.device import usable_cores
from feelgood.studies.batches import CellBatch
from feelgood.studies.engines.engine import (
    MARK,
    Advanced,
    BatchDone,
    Engine,
    Event,
    Failed,
    Lost,
    Note,
)

#: How often the first worker is started, when something kills it while it starts.
_STARTS = 3
#: The share of an accelerator's memory that a process reserves, and how JAX is told another.
_FRACTION, _USUAL_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION", 0.75


@dataclasses.dataclass
class _Worker:
    """A process and what it is doing."""

    process: "subprocess.Popen[str]"
    #: Its number among the workers, which says which cores are its own.
    place: int
    batch: CellBatch | None = None
    listener: threading.Thread | None = None


class LocalEngine(Engine):
    """Worker processes that end with this one. A worker that dies is replaced."""

    def __init__(self, *, workers: int | None = None, checkpoint_every: float = 20.0) -> None:
        self._wanted = workers
        self._every = checkpoint_every
        self._workers: list[_Worker] = []
        self._events: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
        self._store = Path()
        self._slots = 1

    def start(self, store: Path) -> str:
        self._store = store.resolve()
        for _ in range(_STARTS):
            self._workers.append(self._spawn())
            worker, message = self._events.get()
            if message is not None and "hello" in message:
                platform = str(message["hello"])
                on_cpu = platform == "cpu"
                self._slots = self._wanted or (usable_cores() if on_cpu else 1)
                return platform
            self._workers.remove(worker)
            code = worker.process.returncode
            if code >= 0:
                raise FeelgoodError(
                    f"the worker process ended with code {code} while it started (what it wrote "
                    "is above): try 'feelgood doctor'."
                )
        raise FeelgoodError(
            f"the worker process was ended by signal {-code} while it started, {_STARTS} times: "
            "see whether the machine has enough memory, and try 'feelgood doctor'."
        )

    @property
    def slots(self) -> int:
        return self._slots

    def _environment(self) -> dict[str, str]:
        """Several workers on one accelerator share what JAX would reserve for one."""
        share = {_FRACTION: f"{_USUAL_FRACTION / (self._wanted or 1):.4f}"}
        return {**share, **os.environ} if (self._wanted or 1) > 1 else dict(os.environ)

    def _spawn(self) -> _Worker:
        workers = self._wanted or usable_cores()
        taken = {worker.place for worker in self._workers}
        place = next(i for i in itertools.count() if i not in taken)
        command = [sys.executable, "-m", "feelgood.studies.worker", str(place), str(workers)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            env=self._environment(),
        )
        worker = _Worker(process, place)
        worker.listener = threading.Thread(target=self._listen, args=(worker,), daemon=True)
        worker.listener.start()
        return worker

    def _listen(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        with worker.process.stdout as lines:
            for line in lines:
                # Python may print of itself before the worker begins: that is for people.
                printed, mark, message = line.partition(MARK)
                if printed.strip():
                    print(printed.rstrip("\n"), file=sys.stderr, flush=True)
                if mark:
                    self._events.put((worker, json.loads(message)))
        worker.process.wait()
        assert worker.process.stdin is not None
        with contextlib.suppress(OSError):  # what it did not read any more
            worker.process.stdin.close()
        self._events.put((worker, None))

    def submit(self, batch: CellBatch) -> None:
        worker = next((w for w in self._workers if w.batch is None), None)
        if worker is None:
            worker = self._spawn()
            self._workers.append(worker)
        worker.batch = batch
        message = {
            "batch": batch.to_json(),
            "store": str(self._store),
            "checkpoint_every": self._every,
        }
        assert worker.process.stdin is not None
        try:
            worker.process.stdin.write(json.dumps(message) + "\n")
            worker.process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has died, its pipe may be closed: the listener says so

    def wait(self, seconds: float) -> list[Event]:
        events: list[Event] = []
        try:
            worker, message = self._events.get(timeout=seconds)
        except queue.Empty:
            return events
        batch = worker.batch
        if message is None:
            self._workers.remove(worker)
            if batch is not None:
                code = worker.process.returncode
                events.append(Lost(batch, f"its worker ended with code {code}"))
        elif batch is not None and message.get("progress"):
            events.append(Advanced(batch, message["progress"]))
        elif batch is not None and "note" in message:
            events.append(Note(batch, message["note"]))
        elif batch is not None and "done" in message:
            worker.batch = None
            events.append(BatchDone(batch))
        elif batch is not None and "failed" in message:
            worker.batch = None
            events.append(Failed(batch, message["failed"]))
        return events

    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.wait()
            assert worker.listener is not None
            worker.listener.join()
        self._workers.clear()
