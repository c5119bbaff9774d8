"""The code that a Markdown page shows."""

import re
from pathlib import Path
from typing import NamedTuple


class Fence(NamedTuple):
    """One block between two fences; `title` is the name of the file that it shows, if any."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str


def fences(page: Path) -> list[Fence]:
    """The blocks of a page that name their language, in order."""
    text = page.read_text(encoding="utf-8")
    fence = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        Fence(page, text[: m.start()].count("\n") + 1, m[1], m[2], m[3])
        for m in fence.finditer(text)
    ]
