"""What happens is written down before the call returns: to a journal, to a log, or to both."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feelgood.core.errors import FeelgoodError
from feelgood.live.bandit_files import saved_bytes, write_bandit
from feelgood.live.decisions import Decision
from feelgood.live.journal import STATE, Journal, Record
from feelgood.live.live_state import LiveState

if TYPE_CHECKING:
    from feelgood.logs.event_log import EventLog


class Recorder:
    """Writes to a journal and to a log, where there are such: to both or, with an error, to none.

    Not for several threads at once.
    """

    def __init__(self, journal: Journal | None, log: "EventLog | None", own_log: bool) -> None:
        self.journal, self.log, self._own_log = journal, log, own_log

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, journal: Journal | None, log: "EventLog | str | Path | None"
    ) -> Iterator["Recorder | None"]:
        """With a log that is open, or of this path; None: nothing to write to.

        The files stay open unless the block ends with an error.
        """
        recorder = None
        try:
            if journal is not None or log is not None:
                recorder = cls(journal, None, own_log=False)
                if log is not None:
                    from feelgood.logs.event_log import EventLog  # needs pyarrow

                    recorder._own_log = not isinstance(log, EventLog)
                    recorder.log = log if isinstance(log, EventLog) else EventLog(log)
            yield recorder
        except BaseException:
            if recorder is not None:
                recorder.close()
            raise

    # ---- what happens -------------------------------------------------------------------

    def decided(self, state: LiveState, made: Sequence[Decision]) -> None:
        """Decisions, which wait."""
        waiting = [state.ledger.waiting[decision.id] for decision in made]
        if self.journal is not None:
            for decision, own in zip(made, waiting, strict=True):
                self.journal.decided(decision.id, own.time, own.slot, own.context)

        def log(to: "EventLog") -> None:
            rows = [
                (decision, state.seen(own.context, decision.arms), int(1e6 * own.time))
                for decision, own in zip(made, waiting, strict=True)
            ]
            to.record_all(rows)

        self._commit(log)

    def rewarded(self, paid: Sequence[tuple[int, float, float]]) -> None:
        """Rewards: ids, rewards, weights."""
        if self.journal is not None:
            for one in paid:
                self.journal.rewarded(*one)
        self._commit(lambda to: to.reward_all(paid))

    def observed(self, rows: Sequence[tuple[int, float, float, Any]]) -> None:
        """Rewards that were no decision's: arm, reward, weight and context; not for the log."""
        if self.journal is not None:
            for row in rows:
                self.journal.observed(*row)
            self.journal.commit()

    def expired(self, ids: list[int]) -> None:
        """Decisions that were given up; in a log they have no reward."""
        if self.journal is not None and ids:
            self.journal.expired(ids)
            self.journal.commit()

    def removed(self, arm: Any) -> None:
        """An arm that went."""
        if self.journal is not None:
            self.journal.removed(arm)
            self.journal.commit()

    def _commit(self, log: "Callable[[EventLog], None]") -> None:
        if self.journal is not None:
            self.journal.commit()
        if self.log is not None:
            try:
                log(self.log)
            except BaseException:
                if self.journal is not None:
                    self.journal.take_back()
                raise

    # ---- files --------------------------------------------------------------------------

    def begin(self, state: LiveState, events: Sequence[Record] = ()) -> None:
        """Go on with this state; `events` are those that its journal had."""
        if self.log is not None:
            state.ledger.next = max(state.ledger.next, self.log.next_id)
            self._complete(self.log, events)
        self.compact(state)

    def _complete(self, log: "EventLog", events: Sequence[Record]) -> None:
        """Log the rewards of the last call, which a kill may have ended before it did that."""
        last: dict[int, tuple[int, float, float]] = {}
        for event in reversed(events):
            if event.kind != "R":
                break
            own, reward, weight = event.numbers
            last[own] = (own, reward, weight)
        missing = log.unpaid(list(last)) if last else []
        log.reward_all([last[own] for own in missing])

    def compact(self, state: LiveState) -> None:
        """Save the state anew, with an empty file of records."""
        journal = self.journal
        if journal is None:
            return
        name = journal.begin()
        try:
            saved = state.saved(records=name)
            write_bandit(journal.folder / STATE, saved)
        except BaseException:
            journal.give_up()
            raise
        journal.go_on(len(saved_bytes(saved)))

    def compact_if_long(self, state: LiveState) -> None:
        """The same where it is time to; if it fails, the old files still tell everything."""
        if self.journal is not None and self.journal.is_long:
            with contextlib.suppress(FeelgoodError):
                self.compact(state)

    def close(self) -> None:
        """Everything on disk, and the files free for others."""
        if self.log is not None and self._own_log:
            self.log.close()
        elif self.log is not None:
            self.log.flush()
        if self.journal is not None:
            self.journal.close()
