"""Runs a study: plans what is missing, hands it to an engine, keeps count."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from feelgood.core import atomic
from feelgood.core.arguments import parse_name, parse_number, parse_whole
from feelgood.core.errors import FeelgoodError, shown
from feelgood.studies.batches import CellBatch, Claim, plan, tidy
from feelgood.studies.engines import (
    Advanced,
    BatchDone,
    Engine,
    Failed,
    Lost,
    Note,
    make_engine,
)
from feelgood.studies.planning import Study
from feelgood.studies.store import Damage, Store
from feelgood.studies.tuned_studies import TunedStudy

ENGINES = ("local", "ray")
#: How often a batch whose worker died is tried again.
TRIES = 3
#: Seconds between two looks at batches that another process is running.
LOOK_AGAIN = 1.0


@dataclasses.dataclass(frozen=True)
class Watcher:
    """What a run of a study tells while it goes on; every function may be left as it is."""

    damaged: Callable[[Damage], None] = lambda damage: None
    planned: Callable[[Sequence[CellBatch], int, int], None] = lambda batches, done, all_: None
    started: Callable[[CellBatch], None] = lambda batch: None
    progress: Callable[[CellBatch, int], None] = lambda batch, chain_rounds: None
    noted: Callable[[CellBatch, str], None] = lambda batch, sentence: None
    finished: Callable[[CellBatch], None] = lambda batch: None
    lost: Callable[[CellBatch, str], None] = lambda batch, reason: None
    failed: Callable[[CellBatch, str], None] = lambda batch, reason: None
    waiting: Callable[[int], None] = lambda batches: None


@dataclasses.dataclass(frozen=True)
class StudyOutcome:
    """How a run of a study ended."""

    done: int
    missing: int
    failures: dict[str, str]


def run_study(
    study: Study | TunedStudy | Any,
    store: Store | str | Path | Any,
    *,
    engine: str | Engine | Any = "local",
    workers: int | Any | None = None,
    address: str | Any | None = None,
    checkpoint_every: float | Any = 20.0,
    watcher: Watcher | Any | None = None,
) -> StudyOutcome:
    """Run what is missing of a study.

    **Arguments:**

    - `study`, `store`: what to run, and where the results go.
    - `engine`: `"local"`, `"ray"`, or an `Engine`.
    - `workers`: how many batches at once; by default one per core, or one on an accelerator.
    - `address`: of a Ray cluster that is there already.
    - `checkpoint_every`: seconds between two checkpoints of a batch.
    - `watcher`: is told what happens.

    Interrupting it loses nothing but the time since the last checkpoints; running it again goes
    on from there, and the results are the same bits. A tuned study runs its search first.

    **Example:**

    >>> import tempfile
    >>> from feelgood.studies import Study, plan_cells, run_study
    >>> study = Study("mine", tuple(plan_cells("linear-20", "uniform", rounds=50, seeds=2)))
    >>> run_study(study, tempfile.mkdtemp() + "/results", workers=1)
    StudyOutcome(done=1, missing=0, failures={})
    """
    _refuse_others(study, engine, watcher)
    if workers is not None:
        workers = parse_whole("workers", workers, 1, 10_000)
    if address is not None:
        address = parse_name("address", address)
    if parse_number("checkpoint_every", checkpoint_every, what := "seconds, at least 0") < 0.0:
        raise FeelgoodError(f"checkpoint_every = {checkpoint_every} is not allowed: use {what}.")
    place = store if isinstance(store, Store) else Store(store)

    def start() -> Engine:
        if isinstance(engine, Engine):
            return engine
        return make_engine(
            engine, workers=workers, address=address, checkpoint_every=checkpoint_every
        )

    done: dict[str, StudyOutcome] = {}
    # What a part finds out may add another one.
    while left := [p for p in study.parts(place.path) if p.study.name not in done]:
        part = left[0]
        own = place if part.folder == place.path else Store(part.folder, notify=place.notify)
        done[part.study.name] = _run_part(part.study, own, start, watcher or Watcher())
        part.finish()
    return StudyOutcome(
        done=sum(outcome.done for outcome in done.values()),
        missing=sum(outcome.missing for outcome in done.values()),
        failures={k: v for outcome in done.values() for k, v in outcome.failures.items()},
    )


def _refuse_others(study: Any, engine: Any, watcher: Any) -> None:
    """Refuse things that are no study, no engine, no watcher."""
    if not isinstance(study, (Study, TunedStudy)):
        raise FeelgoodError(
            f"{shown(study)} is no study: give a Study, such as read_study returns."
        )
    if not isinstance(engine, Engine) and not (isinstance(engine, str) and engine in ENGINES):
        raise FeelgoodError(f"unknown engine {shown(engine)}: use {' or '.join(ENGINES)}.")
    if watcher is not None and not isinstance(watcher, Watcher):
        raise FeelgoodError(f"watcher = {shown(watcher)} is not allowed: use a Watcher.")


def _run_part(
    study: Study, place: Store, start: Callable[[], Engine], watch: Watcher
) -> StudyOutcome:
    """Run what is missing in this store."""
    for damage in place.verify(cell.id for cell in study.cells):
        watch.damaged(damage)
    missing = {cell.id for cell in study.cells} - place.present()
    failures: dict[str, str] = {}
    if missing:
        with start() as runner:
            failures = _Run(study, place, runner, watch).go()
    else:
        watch.planned([], len(study.cells), len(study.cells))
    with contextlib.suppress(atomic.LostWrite):  # a finished store may be one to read only
        tidy(place)
    left = {cell.id for cell in study.cells} - place.present()
    return StudyOutcome(len(study.cells) - len(left), len(left), failures)


class _Run:
    """One run of a study: which batches wait, which are running, which failed."""

    def __init__(self, study: Study, store: Store, engine: Engine, watch: Watcher) -> None:
        self.study, self.store, self.engine, self.watch = study, store, engine, watch
        self.running: dict[str, Claim] = {}
        self.tries: dict[str, int] = {}
        self.failures: dict[str, str] = {}

    def go(self) -> dict[str, str]:
        """Until nothing is left that could be run here; returns why batches failed."""
        platform = self.engine.start(self.store.path)
        waiting = plan(self.store, self.study.cells, platform, self.study.plugins)
        left = sum(len(batch.cells) for batch in waiting)
        self.watch.planned(waiting, len(self.study.cells) - left, len(self.study.cells))
        try:
            while waiting or self.running:
                elsewhere = self._fill(waiting)
                if self.running:
                    self._take_events(waiting, LOOK_AGAIN if elsewhere else 60.0)
                elif waiting:
                    self.watch.waiting(len(waiting))
                    time.sleep(LOOK_AGAIN)
        finally:
            for claim in self.running.values():
                claim.release()
        return self.failures

    def _fill(self, waiting: list[CellBatch]) -> bool:
        """Give work to idle workers; returns whether some of it is held by another process."""
        held = []
        while waiting and len(self.running) < self.engine.slots:
            batch = waiting.pop(0)
            if self._is_done(batch):  # another process finished it
                self.watch.finished(batch)
                continue
            claim = Claim(self.store, batch.id)
            if not claim.take():
                held.append(batch)
                continue
            if self._is_done(batch):  # finished between the two looks
                claim.finish()
                self.watch.finished(batch)
                continue
            self.running[batch.id] = claim
            self.watch.started(batch)
            self.engine.submit(batch)
        waiting[:0] = held
        return bool(held)

    def _is_done(self, batch: CellBatch) -> bool:
        return all(self.store.file(cell.id).exists() for cell in batch.cells)

    def _take_events(self, waiting: list[CellBatch], seconds: float) -> None:
        for event in self.engine.wait(seconds):
            batch = event.batch
            if isinstance(event, Advanced):
                self.watch.progress(batch, event.chain_rounds)
            elif isinstance(event, Note):
                self.watch.noted(batch, event.sentence)
            elif isinstance(event, BatchDone):
                self.running.pop(batch.id).finish()
                self.watch.finished(batch)
            elif isinstance(event, Failed):
                self._give_up(batch, event.reason)
            elif isinstance(event, Lost):
                self.tries[batch.id] = self.tries.get(batch.id, 0) + 1
                if self.tries[batch.id] >= TRIES:
                    self._give_up(batch, f"{event.reason}, {TRIES} times")
                else:
                    self.running.pop(batch.id).release()
                    self.watch.lost(batch, event.reason)
                    waiting.insert(0, batch)

    def _give_up(self, batch: CellBatch, reason: str) -> None:
        self.running.pop(batch.id).release()
        self.failures[batch.label] = reason
        self.watch.failed(batch, reason)
        if reason.startswith("cannot write"):
            # The store itself is in trouble: every other batch would fail alike.
            raise FeelgoodError(reason)
