"""What the pages are made of: text in Markdown, and figures that are drawn once it is written."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from feelgood.report.rendering import Chart
from showdown import keeping
from showdown.arm_laws import ArmLaw
from showdown.markdown import grid, items, section
from showdown.shelf import Shelf
from showdown.yardsticks import Yardstick

__all__ = ["FIGURES", "Book", "grid", "items", "section"]

T = TypeVar("T")
#: Folder of the figures, beside the pages.
FIGURES = "figures"


@dataclasses.dataclass
class Book:
    """Everything that a folder of results holds, and the figures that pages have asked for."""

    shelf: Shelf
    #: What all studies ask for, and what tuned ones have tried.
    asked: Sequence[Any] = ()
    searched: Sequence[dict[str, Any]] = ()
    yardsticks: Mapping[tuple[str, str, int], Yardstick] = dataclasses.field(default_factory=dict)
    #: What samplers draw along one history, see `arm_laws`.
    arm_laws: Sequence[ArmLaw] = ()
    figures: dict[str, Callable[[], Chart]] = dataclasses.field(default_factory=dict)
    _known: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> "Book":
        """All of the folder."""
        from showdown import arm_laws, asking, searching, yardsticks

        return cls(
            Shelf(keeping.read(folder)),
            asking.read(folder),
            searching.read(folder),
            yardsticks.read(folder),
            arm_laws.read(folder),
        )

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What several pages need is computed once."""
        if name not in self._known:
            self._known[name] = make()
        found: T = self._known[name]
        return found

    def figure(self, name: str, caption: str, draw: Callable[[], Chart]) -> str:
        """A figure to be drawn later, as Markdown."""
        self.figures[f"{FIGURES}/{name}.svg"] = draw
        return f"![{name}]({FIGURES}/{name}.svg)\n\n*{caption}*"
