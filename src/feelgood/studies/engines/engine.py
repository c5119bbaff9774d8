"""What an engine is."""

import dataclasses
from abc import ABC, abstractmethod
from pathlib import Path

from feelgood.core.errors import FeelgoodError
from feelgood.studies.batches import CellBatch

#: What stands before a worker's message, and in nothing that a program prints of itself.
MARK = "\x1efeelgood\x1e"


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happened to a batch."""

    batch: CellBatch


@dataclasses.dataclass(frozen=True)
class Advanced(Event):
    """So many more chain-rounds were played."""

    chain_rounds: int


@dataclasses.dataclass(frozen=True)
class Note(Event):
    """Something to know about the batch that is no error."""

    sentence: str


@dataclasses.dataclass(frozen=True)
class BatchDone(Event):
    """All cells of the batch are in the store."""


@dataclasses.dataclass(frozen=True)
class Failed(Event):
    """The batch cannot be run, and trying again would not help."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Lost(Event):
    """The worker died; the batch can be run again from its last checkpoint."""

    reason: str


def failure_in_words(error: BaseException) -> str:
    """Why a batch failed, in one line: a sentence where the reason is known."""
    from feelgood.engine.device import GIB, VARIABLE, memory_limit

    lines = str(error).strip().splitlines()
    if isinstance(error, FeelgoodError):
        return lines[0]
    if "RESOURCE_EXHAUSTED" in str(error):
        limit = memory_limit()
        size = f"{limit / GIB:.1f} GiB" if limit else "what it has"
        return (
            f"the device ran out of memory although its chains were thought to fit into {size}: "
            f"run it again with {VARIABLE} set to fewer GiB."
        )
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


class Engine(ABC):
    """Runs batches on workers. Used as a context: leaving it ends all workers."""

    @abstractmethod
    def start(self, store: Path) -> str:
        """Start the first worker for this store; returns the platform that workers run on."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many batches it can run at once."""

    @abstractmethod
    def submit(self, batch: CellBatch) -> None:
        """Run a batch; called only while fewer than `slots` are running."""

    @abstractmethod
    def wait(self, seconds: float) -> list[Event]:
        """What happened, as soon as something did, or after so many seconds."""

    @abstractmethod
    def stop(self) -> None:
        """End all workers."""

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
