"""The figures of pages that show how each is made: `python -m handbook.figures`.

The Python and the commands of such a page are run from top to bottom in a folder of its own, and
what they save as SVG is copied to `docs/figures/`.
"""

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("feel-good.md", "gallery.md")
_CODE = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets_of(page: str) -> list[tuple[str, str]]:
    """The code of a page, in its order: its language and its text."""
    return _CODE.findall((DOCS / page).read_text(encoding="utf-8"))


def draw(page: str) -> list[str]:
    """Make the figures of a page again; their names."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for language, source in snippets_of(page):
            if language == "python":
                exec(compile(source, page, "exec"), {"__name__": "__main__"})
                continue
            for line in map(shlex.split, source.splitlines()):
                subprocess.run([sys.executable, "-m", *line], check=True)
        made = sorted(Path(folder).glob("*.svg"))
        for file in made:
            shutil.copy(file, DOCS / "figures" / file.name)
        return [file.name for file in made]


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        print(name, *draw(name))
