"""SVG without what a still picture does not need: the charts carry marks for the pointer."""

import re

_INVISIBLE = re.compile(r'<path (?=[^>]*\bopacity="0")[^>]*(?:/>|></path>)')
_SPOKEN = re.compile(r' (?:aria-[a-z]+|role|pointer-events)="[^"]*"')
_LONG = re.compile(r"\d+\.\d{2,}")


def slim(svg: str) -> str:
    """The same picture: no invisible marks, no labels of single marks, coordinates to 0.1."""
    svg = _INVISIBLE.sub("", svg)
    svg = _SPOKEN.sub("", svg)
    return _LONG.sub(lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), svg)
