"""Colours, shapes and fonts of charts, on white and on black."""

from typing import Any, Literal

#: Colours that stay apart for the three common kinds of colour blindness, on white and on black.
#: Past the last one they come again with another dash or shape.
PALETTES = {
    "light": (
        *("#0a4983", "#b12c08", "#21804a", "#d55fa5"),
        *("#0f9ae6", "#bd8805", "#704bd6", "#5f535d"),
    ),
    "dark": (
        *("#6ba1da", "#fa7b46", "#36d18f", "#bb6498"),
        *("#acd4fa", "#f3d344", "#9088f9", "#b8bdc1"),
    ),
}
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (7, 3), (2, 2), (10, 3, 2, 3), (4, 6))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
#: Text and lines of each theme; the page's style sheet uses the same.
INKS = {
    "light": {"text": "#1d2430", "soft": "#5b6473", "line": "#d9dee6", "paper": "#ffffff"},
    "dark": {"text": "#e8ecf2", "soft": "#a3adbb", "line": "#38414e", "paper": "#161b22"},
}
FONT = "system-ui, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


def theme_config(theme: Literal["light", "dark"] = "light") -> dict[str, Any]:
    """Vega-Lite's `config` for a theme: fonts, quiet axes, the palette."""
    ink = INKS[theme]
    return {
        "background": ink["paper"],
        "font": FONT,
        "view": {"stroke": None},
        "range": {"category": list(PALETTES[theme])},
        "axis": {
            "labelColor": ink["soft"],
            "titleColor": ink["text"],
            "gridColor": ink["line"],
            "domainColor": ink["line"],
            "tickColor": ink["line"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "labelPadding": 6,
        },
        "legend": {
            "labelColor": ink["text"],
            "titleColor": ink["text"],
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
        },
        "header": {"labelColor": ink["text"], "titleColor": ink["text"], "labelFontSize": 12},
        "title": {"color": ink["text"], "fontSize": 13, "fontWeight": 600, "anchor": "start"},
    }
