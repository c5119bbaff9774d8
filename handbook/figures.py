"""The figures of pages that show how each is made: `python -m handbook.figures`.

The Python of such a page is run from top to bottom in a folder of its own, and what it saves as SVG
is copied to `docs/figures/`.
"""

import contextlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("feel-good.md", "gallery.md")
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets_of(page: str) -> list[str]:
    """The Python of a page, in its order."""
    return _PYTHON.findall((DOCS / page).read_text(encoding="utf-8"))


def draw(page: str) -> list[str]:
    """Make the figures of a page again; their names."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for source in snippets_of(page):
            exec(compile(source, page, "exec"), {"__name__": "__main__"})
        made = sorted(Path(folder).glob("*.svg"))
        for file in made:
            shutil.copy(file, DOCS / "figures" / file.name)
        return [file.name for file in made]


if __name__ == "__main__":
    os.environ.setdefault("FEELGOOD_PROGRESS", "0")
    for name in sys.argv[1:] or PAGES:
        print(name, *draw(name))
