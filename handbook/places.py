"""Where a file of the repository stands on the site, and links between them.

Pages are written for readers of the repository too: their links are paths between its files. A
link to a file outside `docs/` leads to a copy below `project/` on the site.
"""

import posixpath
import re
from collections.abc import Callable

#: Pages outside `docs/` that the site has too.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/release-notes.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "bench/README.md": "project/speed.md",
    "results/README.md": "project/result-files.md",
    "studies/README.md": "project/study-files.md",
}
#: Where other files that pages link to are copied.
FILES = "project/files"

_LINK = re.compile(r"(?P<open>!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()(?P<target>[^)\s]+)(?P<close>\))")
_CODE = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$|`[^`]+`", re.MULTILINE | re.DOTALL)
_HELD = re.compile("\x00(\\d+)\x00")
_TITLE = re.compile(r"^(```\w+) title=(\S+)$", re.MULTILINE)


def place_of_file(path: str) -> str:
    """Where a file of the repository stands on the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path, f"{FILES}/{path}")


def file_at(place: str) -> str:
    """The file of the repository that stands at a place of the site."""
    outside = {there: path for path, there in PAGES.items() if path != "README.md"}
    return outside.get(place, f"docs/{place}")


def relative(there: str, here: str) -> str:
    """The path from a page of the site to a file of it."""
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with all but its code changed."""
    codes: list[str] = []

    def hold(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"\x00{len(codes) - 1}\x00"

    return _HELD.sub(lambda held: codes[int(held[1])], change(_CODE.sub(hold, text)))


def links_of(text: str) -> list[str]:
    """The paths that a page links to, without addresses and places within the page."""
    found: list[str] = []

    def collect(part: str) -> str:
        found.extend(m["target"] for m in _LINK.finditer(part))
        return part

    outside_code(text, collect)
    paths = [t.partition("#")[0] for t in found if "://" not in t and not t.startswith("mailto:")]
    return [p for p in paths if p]


def for_the_site(text: str, place: str) -> str:
    """A page of the repository as the site's Markdown: links, code titles, folded parts."""
    source = file_at(place)

    def moved(link: re.Match[str]) -> str:
        path, mark, anchor = link["target"].partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return link[0]
        there = place_of_file(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        return f"{link['open']}{relative(there, place)}{mark}{anchor}{link['close']}"

    text = outside_code(text, lambda part: _LINK.sub(moved, part))
    text = outside_code(text, lambda part: part.replace("<details>", '<details markdown="1">'))
    return _TITLE.sub(r'\1 title="\2"', text)
