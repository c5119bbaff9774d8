"""SVG without what a still picture does not need: the charts carry marks for the pointer."""

import re

_INVISIBLE = re.compile(r'<path (?=[^>]*\bopacity="0")[^>]*(?:/>|></path>)')
_SPOKEN = re.compile(r' (?:aria-[a-z]+|role|pointer-events)="[^"]*"')
_PLACES = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"\d+\.\d{2,}")


def slim(svg: str) -> str:
    """The same picture: no invisible marks, no labels of single marks, coordinates to 0.1."""
    svg = _INVISIBLE.sub("", svg)
    svg = _SPOKEN.sub("", svg)
    return _PLACES.sub(lambda place: _LONG.sub(_rounded, place[0]), svg)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")
