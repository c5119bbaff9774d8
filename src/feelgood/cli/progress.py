"""How a study looks while it runs: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from feelgood.api.progress import RateColumn
from feelgood.core.numbers import duration
from feelgood.studies.batches import CellBatch
from feelgood.studies.driver import Watcher
from feelgood.studies.store import Damage

#: Seconds between two lines about progress where the output is not a terminal.
LINE_EVERY = 30.0


@contextmanager
def study_watcher(console: Console) -> Iterator[Watcher]:
    """A watcher that shows on `console` what a study does."""
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bars:
            yield _Bars(bars, console).watcher()
    else:
        yield _Lines(console).watcher()


class _Bars:
    """One bar for the study, one for each batch that is running."""

    def __init__(self, bars: Progress, console: Console) -> None:
        self.bars, self.console = bars, console
        self.overall: TaskID | None = None
        self.tasks: dict[str, TaskID] = {}
        self.counted: dict[str, int] = {}

    def watcher(self) -> Watcher:
        return Watcher(
            damaged=lambda damage: _say_damage(self.console, damage),
            planned=self.planned,
            started=self.started,
            progress=self.progress,
            noted=lambda batch, sentence: _say_noted(self.console, batch, sentence),
            finished=self.finished,
            lost=self.lost,
            failed=self.failed,
        )

    def planned(self, batches: Sequence[CellBatch], done: int, cells: int) -> None:
        total = sum(batch.chain_rounds for batch in batches)
        text = f"study, {done} of {cells} cells done before"
        if self.overall is not None:  # an earlier part of the study
            self.bars.remove_task(self.overall)
        self.overall = self.bars.add_task(text, total=total)

    def started(self, batch: CellBatch) -> None:
        text = f"  {escape(batch.label)}"
        self.tasks[batch.id] = self.bars.add_task(text, total=batch.chain_rounds)
        self.counted[batch.id] = 0

    def _count(self, batch: CellBatch, chain_rounds: int) -> None:
        assert self.overall is not None
        self.bars.advance(self.overall, chain_rounds)
        self.counted[batch.id] = self.counted.get(batch.id, 0) + chain_rounds

    def progress(self, batch: CellBatch, chain_rounds: int) -> None:
        self.bars.advance(self.tasks[batch.id], chain_rounds)
        self._count(batch, chain_rounds)

    def _remove(self, batch: CellBatch) -> None:
        if batch.id in self.tasks:
            self.bars.remove_task(self.tasks.pop(batch.id))

    def finished(self, batch: CellBatch) -> None:
        self._remove(batch)
        self._count(batch, batch.chain_rounds - self.counted.get(batch.id, 0))

    def lost(self, batch: CellBatch, reason: str) -> None:
        self._remove(batch)
        self._count(batch, -self.counted.get(batch.id, 0))
        _say_lost(self.console, batch, reason)

    def failed(self, batch: CellBatch, reason: str) -> None:
        """Take the batch out of the count and out of the total."""
        assert self.overall is not None
        self._remove(batch)
        self._count(batch, -self.counted.get(batch.id, 0))
        total = self.bars.tasks[self.bars.task_ids.index(self.overall)].total or 0
        self.bars.update(self.overall, total=total - batch.chain_rounds)
        _say_failed(self.console, batch, reason)


class _Lines:
    """A line when a batch ends, and now and then in between."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.total = self.played = self.batches = self.ended = self.lost_for_good = 0
        self.counted: dict[str, int] = {}
        self.began = self.last = time.monotonic()

    def watcher(self) -> Watcher:
        return Watcher(
            damaged=lambda damage: _say_damage(self.console, damage),
            planned=self.planned,
            started=lambda batch: self.counted.update({batch.id: 0}),
            progress=self.progress,
            noted=lambda batch, sentence: _say_noted(self.console, batch, sentence),
            finished=self.finished,
            lost=self.lost,
            failed=self.failed,
        )

    def planned(self, batches: Sequence[CellBatch], done: int, cells: int) -> None:
        """A part of a study begins: what is counted starts again."""
        self.total, self.batches = sum(batch.chain_rounds for batch in batches), len(batches)
        self.played = self.ended = self.lost_for_good = 0
        self.began = time.monotonic()
        self.console.print(
            f"{done} of {cells} cells are done; {len(batches)} batches, "
            f"{self.total:,} rounds to play",
            markup=False,
        )

    def _count(self, batch: CellBatch, chain_rounds: int) -> None:
        self.played += chain_rounds
        self.counted[batch.id] = self.counted.get(batch.id, 0) + chain_rounds

    def progress(self, batch: CellBatch, chain_rounds: int) -> None:
        self._count(batch, chain_rounds)
        if time.monotonic() - self.last >= LINE_EVERY:
            self._line(f"{batch.label} goes on")

    def _line(self, what: str) -> None:
        self.last = time.monotonic()
        spent = self.last - self.began
        share = self.played / self.total if self.total else 1.0
        left = f", about {duration(spent * (1 - share) / share)} left" if 0 < share < 1 else ""
        rate = self.played / max(spent, 1e-9)
        failed = f" ({self.lost_for_good} failed)" if self.lost_for_good else ""
        self.console.print(
            f"{self.ended} of {self.batches} batches{failed}, {100 * share:.0f} %, "
            f"{rate:,.0f} rounds/s{left}: {what}",
            markup=False,
        )

    def finished(self, batch: CellBatch) -> None:
        self.ended += 1
        self._count(batch, batch.chain_rounds - self.counted.get(batch.id, 0))
        self._line(f"{batch.label} is done")

    def lost(self, batch: CellBatch, reason: str) -> None:
        self._count(batch, -self.counted.get(batch.id, 0))
        _say_lost(self.console, batch, reason)

    def failed(self, batch: CellBatch, reason: str) -> None:
        """Take the batch out of the count and out of the total."""
        self.ended += 1
        self.lost_for_good += 1
        self._count(batch, -self.counted.get(batch.id, 0))
        self.total -= batch.chain_rounds
        _say_failed(self.console, batch, reason)


def _say_damage(console: Console, damage: Damage) -> None:
    console.print(str(damage), style="yellow", markup=False, soft_wrap=True)


def _say_noted(console: Console, batch: CellBatch, sentence: str) -> None:
    console.print(f"{batch.label}: {sentence}", markup=False, soft_wrap=True)


def _say_lost(console: Console, batch: CellBatch, reason: str) -> None:
    text = f"{batch.label}: {reason}; it is run again from its last checkpoint."
    console.print(text, style="yellow", markup=False, soft_wrap=True)


def _say_failed(console: Console, batch: CellBatch, reason: str) -> None:
    console.print(f"{batch.label} failed: {reason}", style="red", markup=False, soft_wrap=True)
