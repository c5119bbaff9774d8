"""Batches on a Ray cluster: an extra, for those who have one."""

import contextlib
import os
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from feelgood.core import atomic
from feelgood.core.errors import FeelgoodError
from feelgood.studies.batches import CellBatch, batch_folder
from feelgood.studies.cells import to_bytes
from feelgood.studies.engines.engine import BatchDone, Engine, Event, Failed, Lost, failure_in_words
from feelgood.studies.execute import execute
from feelgood.studies.folder_checkpoints import FolderCheckpoints
from feelgood.studies.store import Store

#: What Ray takes from the environment, once, when it is imported: a cluster of our own listens to
#: this machine alone, and asks those who call for its token.
OWN_CLUSTER = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}


def _import_ray(own_cluster: bool) -> Any:
    if own_cluster and "ray" not in sys.modules:
        for name, value in OWN_CLUSTER.items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise FeelgoodError(
            "--engine ray needs Ray, which is not installed: pip install 'feelgood[ray]'."
        ) from None
    return ray


def _probe() -> str:
    """The platform of the worker that runs this."""
    import jax

    return str(jax.devices()[0].platform)


def _play(plan: dict[str, Any], folder: str, token: str, every: float) -> list[tuple[str, bytes]]:
    """Run a batch on some node and send its cells' files back; the driver alone writes the store.

    Checkpoints go to the batch's folder in the store where this node sees the same folder (it
    then holds the driver's token), and to a folder of its own otherwise.
    """
    batch = CellBatch.from_json(plan)
    with contextlib.ExitStack() as stack:
        place = Path(folder)
        if not (place / token).exists():
            place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cells = execute(batch, FolderCheckpoints(place, every), lambda count: None)
        return [(cell.id, to_bytes(cell, result)) for cell, result in cells]


class RayEngine(Engine):
    """Tasks of one core each (or one accelerator, where the cluster has any)."""

    def __init__(
        self, *, workers: int | None = None, address: str | None = None, checkpoint_every: float
    ) -> None:
        self._ray = _import_ray(own_cluster=address is None)
        self._workers, self._address, self._every = workers, address, checkpoint_every
        self._running: dict[Any, CellBatch] = {}
        self._ours = False
        self._token = f"driver-{uuid.uuid4().hex}"

    def start(self, store: Path) -> str:
        self._store = Store(store.resolve(), create=False)
        ray = self._ray
        if not ray.is_initialized():
            try:
                # Without an address a cluster of our own, never one that some file or variable
                # names.
                ray.init(
                    address=self._address or "local",
                    include_dashboard=None if self._address else False,
                    log_to_driver=False,
                    logging_level="ERROR",
                    configure_logging=False,
                )
            except Exception as error:  # Ray raises plain ones, too
                said = " ".join(str(error).split())[:300] or type(error).__name__
                if self._address is None:
                    raise FeelgoodError(
                        f"Ray could not be started on this machine ({said}): run the same command "
                        "again, or use --engine local."
                    ) from error
                raise FeelgoodError(
                    f"cannot reach Ray at {self._address} ({said}): check --address."
                ) from error
            self._ours = True
        gpus = int(ray.cluster_resources().get("GPU", 0))
        # Ray's own retries are off: a lost batch comes back to the study, which counts its tries.
        options = {"num_cpus": 1, "num_gpus": 1 if gpus else 0, "max_retries": 0}
        self._task = ray.remote(**options)(_play)
        platform = ray.get(ray.remote(**{**options, "max_retries": 3})(_probe).remote())
        self._slots = self._workers or max(1, gpus or int(ray.cluster_resources().get("CPU", 1)))
        return str(platform)

    @property
    def slots(self) -> int:
        return self._slots

    def submit(self, batch: CellBatch) -> None:
        folder = batch_folder(self._store, batch)
        with atomic.reporting(folder / self._token):
            (folder / self._token).touch()
        task = self._task.remote(batch.to_json(), str(folder), self._token, self._every)
        self._running[task] = batch

    def wait(self, seconds: float) -> list[Event]:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        events: list[Event] = []
        for task in ready:
            batch = self._running.pop(task)
            try:
                files = self._ray.get(task)
            except self._ray.exceptions.RayTaskError as error:
                events.append(Failed(batch, failure_in_words(error.cause or error)))
            except self._ray.exceptions.RayError as error:
                events.append(Lost(batch, f"its worker or node died ({type(error).__name__})"))
            else:
                for cell_id, content in files:
                    self._store.put_bytes(cell_id, content)
                events.append(BatchDone(batch))
        return events

    def stop(self) -> None:
        for task in self._running:
            with contextlib.suppress(Exception):
                self._ray.cancel(task, force=True)
        self._running.clear()
        if self._ours:
            self._ray.shutdown()
