"""A process that runs batches for `feelgood study`: one JSON message per line, in and out.

Arguments: its number among the workers, and how many there are.

In:  {"batch": {...}, "store": "...", "checkpoint_every": seconds}
Out: {"hello": platform, "device": name}, then for each batch {"progress": chain-rounds} now and
then, {"note": sentence} where there is something to know, and {"done": true} or
{"failed": sentence}. Each message out follows `MARK` on its line.

The worker ends when its input does, so it never outlives the process that started it by more than
one call into a compiled program.
"""

import json
import os
import sys
import threading
import time
import traceback
from typing import Any, TextIO

from feelgood.studies.engines.engine import MARK

#: Seconds between two reports of progress.
REPORT_EVERY = 0.2


def _messages(channel: TextIO) -> Any:
    """Send one message; the reader may be gone, and then so are we."""
    lock = threading.Lock()

    def send(**message: Any) -> None:
        with lock:
            try:
                channel.write(MARK + json.dumps(message) + "\n")
                channel.flush()
            except BrokenPipeError:
                os._exit(1)

    return send


def _run(message: dict[str, Any], send: Any) -> None:
    from feelgood.studies.batches import CellBatch, batch_folder
    from feelgood.studies.execute import execute
    from feelgood.studies.folder_checkpoints import FolderCheckpoints
    from feelgood.studies.store import Store

    batch = CellBatch.from_json(message["batch"])
    store = Store(message["store"], create=False)
    folder = batch_folder(store, batch)
    pending, last = 0, time.monotonic()

    def progress(count: int) -> None:
        nonlocal pending, last
        pending += count
        if time.monotonic() - last >= REPORT_EVERY:
            send(progress=pending)
            pending, last = 0, time.monotonic()

    checkpoints = FolderCheckpoints(folder, message["checkpoint_every"])
    # All cells are computed before the first is written: as long as one is missing, the
    # checkpoints from which it can be made again are there.
    outcome = execute(batch, checkpoints, progress, lambda sentence: send(note=sentence))
    for cell, result in list(outcome):
        store.put(cell, result)
    send(progress=pending)


def use_own_cores(place: int, workers: int) -> list[int]:
    """Keep to this worker's share of the cores, where the system can do that; returns all of them.

    JAX then has as many threads as the share has cores. With as many as the machine has, it would
    split small loops among threads that the other workers keep busy, and take up to twice as long.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    each = max(1, len(cores) // workers)
    first = place * each % len(cores)
    os.sched_setaffinity(0, cores[first : first + each])
    return cores


def main() -> None:
    """Run batches until the input ends."""
    all_cores = use_own_cores(int(sys.argv[1]), int(sys.argv[2]))
    # Programs that print must not disturb the messages.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    send = _messages(channel)

    import jax

    import feelgood  # noqa: F401  (fills the registries, and shows an import error early)
    from feelgood.core.errors import FeelgoodError
    from feelgood.studies.engines.engine import failure_in_words

    device = jax.devices()[0]
    if device.platform != "cpu" and all_cores:
        os.sched_setaffinity(0, all_cores)  # the work is elsewhere; compiling may use them all
    send(hello=device.platform, device=device.device_kind)
    inbox: list[str] = []
    arrived = threading.Condition()

    def listen() -> None:
        for line in sys.stdin:
            with arrived:
                inbox.append(line)
                arrived.notify()
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        with arrived:
            while not inbox:
                arrived.wait()
            line = inbox.pop(0)
        try:
            _run(json.loads(line), send)
        except Exception as error:
            if not isinstance(error, FeelgoodError):
                traceback.print_exc()
            send(failed=failure_in_words(error))
        else:
            send(done=True)


if __name__ == "__main__":
    main()
