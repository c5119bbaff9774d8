"""What mkdocs calls while it builds the site."""

import posixpath
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:  # mkdocs loads this file by its path
    sys.path.insert(0, str(ROOT))

from handbook import places  # noqa: E402

#: What the theme asks a server for on pages that are opened as files, and our own in its place.
OUTSIDE_SCRIPT, OWN_SCRIPT = "https://unpkg.com/iframe-worker/shim", "file-worker.js"


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages of the reference, and the files outside `docs/` that pages link to."""
    from handbook.reference import reference_pages

    for place, text in reference_pages().items():
        files.append(File.generated(config, place, content=text))
    for path, place in places.PAGES.items():
        if path != "README.md":
            files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    sources = {places.file_at(f.src_uri) for f in files.documentation_pages()}
    for source in sorted(sources):
        file = ROOT / source
        for link in places.links_of(file.read_text(encoding="utf-8")) if file.exists() else ():
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
            place = places.place_of_file(path)
            outside = place.startswith(places.FILES) and (ROOT / path).is_file()
            if outside and files.get_file_from_path(place) is None:
                files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as the site needs it."""
    return places.for_the_site(markdown, page.file.src_uri)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page with our own script in place of one from a server."""
    return output.replace(OUTSIDE_SCRIPT, places.relative(OWN_SCRIPT, page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for pages that are no documents, such as 404.html."""
    return output_content.replace(OUTSIDE_SCRIPT, OWN_SCRIPT)
