"""The bar that shows how far a run is, and a word about runs that take long."""

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from feelgood.core.errors import FeelgoodError
from feelgood.core.numbers import duration


class RateColumn(ProgressColumn):
    """Rounds per second, lately."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


class RoundsColumn(ProgressColumn):
    """Rounds done; before the first of them the program is compiled."""

    def render(self, task: Task) -> Text:
        if not task.completed:
            return Text("compiling")
        return Text(f"{task.completed:,.0f}/{task.total or 0:,.0f} rounds")


class Pace:
    """Says once of each agent how long it will take, if that is long.

    Measured from its own rounds of the last seconds, so that compiling does not count.
    """

    #: Seconds to watch before a judgement, and the rest of a run that is worth a word.
    WATCH, LONG = 3.0, 60.0

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.since, self.done, self.said = 0.0, 0, False

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == 0:
            self.done, self.said = 0, False
        elif self.done == 0:
            self.since, self.done = now, done
        elif not self.said and now - self.since >= self.WATCH:
            left = (now - self.since) * (total - done) / max(done - self.done, 1)
            if left > self.LONG:
                self.say(f"{label}: about {duration(left)} left{reason_to_be_slow(label)}.")
                self.said = True
            self.since, self.done = now, done


def reason_to_be_slow(label: str) -> str:
    """Why an agent takes long and slows down, where it is known."""
    from feelgood.agents import grammar

    with contextlib.suppress(FeelgoodError):
        parts = grammar.parts_of(label.split(maxsplit=1)[0].removeprefix("neural-"))
        if parts is not None and parts.bonus_name:
            return ", or more: its bonus reads the whole history in every step"
    return ""


@contextmanager
def progress_bar(console: Console) -> Iterator[Any]:
    """A live bar on a terminal (rounds, rate, remaining time); elsewhere a word about long runs."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        RoundsColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    hidden = not (console.is_terminal or console.is_jupyter)
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        tasks: dict[str, Any] = {}
        pace = Pace(lambda sentence: console.print(sentence, markup=False, soft_wrap=True))

        def report(label: str, done: int, total: int) -> None:
            if done == 0:
                tasks[label] = bar.add_task(escape(label), total=total)
            bar.update(tasks[label], completed=done)
            pace(label, done, total)

        yield report
