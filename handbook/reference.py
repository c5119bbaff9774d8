"""The pages of the reference that are made from the program."""

import ast
import functools
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import feelgood
from handbook.board import board_page
from handbook.entries import entry_sections
from handbook.names import section

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: A page of public names: its place, its title, and the rooms that the names come from.
GROUPS = (
    ("reference/runs.md", "Runs and results", ("api", "engine")),
    ("reference/own.md", "Agents and testbeds of your own", ("core",)),
    ("reference/live.md", "Live bandits, logs and evaluation", ("live", "logs", "evaluation")),
)
MORE = "reference/more.md"
#: The module of each public name.
HOMES: dict[str, str] = vars(feelgood)["_HOMES"]


@functools.cache
def reference_pages() -> dict[str, str]:
    """All generated pages, by their place on the site."""
    pages = {place: names_page(title, rooms) for place, title, rooms in GROUPS}
    pages[MORE] = _more_page()
    pages["challenge-board.md"] = board_page()
    pages["reference/agents.md"] = entry_sections(feelgood.AGENTS)
    pages["reference/testbeds.md"] = entry_sections(feelgood.TESTBEDS)
    return pages


def names_page(title: str, rooms: tuple[str, ...]) -> str:
    """The page of the public names that come from some rooms."""
    names = [name for name, home in HOMES.items() if home.split(".")[1] in rooms]
    lines = [f"# {title}", "", "All of these are names of `feelgood` itself.", ""]
    for name in names:
        lines += section(f"feelgood.{name}", getattr(feelgood, name), HOMES[name])
    return "\n".join(lines)


def _more_page() -> str:
    lines = ["# More names", "", "Names of modules that the guides import.", ""]
    shown = [getattr(feelgood, name) for name in HOMES]
    for module, name in sorted(imported_by_guides()):
        thing = getattr(importlib.import_module(module), name)
        if not any(thing is other for other in shown):
            shown.append(thing)
            lines += section(f"{module}.{name}", thing, module)
    return "\n".join(lines)


def imported_by_guides() -> set[tuple[str, str]]:
    """What the Python of the guides takes from modules of the package: (module, name)."""
    found = set()
    for page in sorted(DOCS.rglob("*.md")):
        for source in _python(page.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(source)):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                if module.startswith("feelgood.") and isinstance(node, ast.ImportFrom):
                    found |= {(module, alias.name) for alias in node.names}
    return {(m, n) for m, n in found if not _is_module(f"{m}.{n}")}


def _is_module(path: str) -> bool:
    try:
        return importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:
        return False


def _python(text: str) -> Iterator[str]:
    """The Python of a page's fences."""
    inside = False
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("```"):
            if inside:
                yield "\n".join(lines)
            inside, lines = line.startswith("```python"), []
        elif inside:
            lines.append(line)
