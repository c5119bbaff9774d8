"""Where batches run: processes on this machine, or a Ray cluster.

An engine gets claimed batches one by one and reports what becomes of each; it knows nothing of
studies, and the store is the same whichever engine fills it.
"""

from feelgood.core.errors import FeelgoodError
from feelgood.studies.engines.engine import Advanced, BatchDone, Engine, Event, Failed, Lost, Note
from feelgood.studies.engines.local import LocalEngine

__all__ = [
    "Advanced",
    "BatchDone",
    "Engine",
    "Event",
    "Failed",
    "LocalEngine",
    "Lost",
    "Note",
    "make_engine",
]


def make_engine(
    name: str, *, workers: int | None = None, address: str | None = None, checkpoint_every: float
) -> Engine:
    """An engine by name."""
    if workers is not None and workers < 1:
        raise FeelgoodError(f"{workers} workers cannot run anything: use at least 1.")
    if name == "local":
        if address is not None:
            raise FeelgoodError("--address is for --engine ray: leave one of the two out.")
        return LocalEngine(workers=workers, checkpoint_every=checkpoint_every)
    if name == "ray":
        from feelgood.studies.engines.ray import RayEngine

        return RayEngine(workers=workers, address=address, checkpoint_every=checkpoint_every)
    raise FeelgoodError(f"unknown engine '{name}': use local or ray.")
