"""The code that a Markdown page shows."""

import re
from pathlib import Path
from typing import NamedTuple

#: What stands on the line before a fence, invisible to readers: `<!-- slow -->` for commands that
#: take minutes, `<!-- not run: REASON -->` for those that no test can run.
MARK = r"(?:<!-- (?P<mark>slow|not run: .+) -->\n)?"
FENCE = re.compile(
    MARK + r"^```(?P<language>\w*)(?: title=(?P<title>\S+))?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Snippet(NamedTuple):
    mark: str | None
    language: str
    title: str | None
    text: str
    line: int

    @property
    def runs(self) -> bool:
        """Whether it is a command or a piece of Python, and no file."""
        shown = self.language in ("bash", "python") and self.title is None
        return shown and not (self.mark or "").startswith("not run")


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    return [
        Snippet(**m.groupdict(), line=text[: m.start("text")].count("\n"))
        for m in FENCE.finditer(text)
    ]
