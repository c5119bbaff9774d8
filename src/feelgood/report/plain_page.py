"""A page without scripts: sentences, tables and pictures in one HTML file."""

import html
from collections.abc import Sequence
from importlib import resources

from feelgood.report.rendering import Chart, render

_SECURITY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
main { max-width: 960px; margin: 0 auto; padding: 0 1.5rem 3rem; }
main section { background: var(--paper); border: 1px solid var(--line); border-radius: 12px;
  padding: 1.25rem; margin-bottom: 1.25rem; overflow-x: auto; }
main section > * + * { margin-top: 0.6rem; }
main svg { max-width: 100%; height: auto; }
main table { border-collapse: collapse; font-size: 0.875rem; }
main th, main td { padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); }
main th, main td { text-align: right; }
main th:first-child, main td:first-child { text-align: left; }
.top { max-width: 960px; }
"""


def sentences(lines: Sequence[str]) -> str:
    """Paragraphs."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts; the first column names the row."""
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def picture(chart: Chart, text: str) -> str:
    """A chart as a picture in the page; `text` says what it shows."""
    drawn = render(chart, "svg").decode()
    return f'<figure role="img" aria-label="{html.escape(text, quote=True)}">{drawn}</figure>'


def plain_page(title: str, lede: str, parts: Sequence[tuple[str, str]]) -> str:
    """The page: a title, a sentence, and sections of a heading and its content."""
    style = resources.files("feelgood.report").joinpath("assets/page.css").read_text("utf-8")
    body = "".join(
        f"<section><h2>{html.escape(heading)}</h2>{content}</section>" for heading, content in parts
    )
    shown = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_SECURITY}">\n'
        f"<title>{shown}</title>\n<style>{style}{_STYLE}</style>\n</head>\n<body>\n"
        f'<header class="top"><div class="brand"><p class="eyebrow">feelgood report</p>'
        f'<h1>{shown}</h1><p class="lede">{html.escape(lede)}</p></div></header>\n'
        f'<main id="content">{body}</main>\n</body>\n</html>\n'
    )
