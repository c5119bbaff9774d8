"""SVG without what a still picture does not need: the charts carry marks for the pointer."""

import re

_INVISIBLE = re.compile(r'<path (?=[^>]*\bopacity="0")[^>]*(?:/>|></path>)')
_SPOKEN = re.compile(r' (?:aria-[a-z]+|role|pointer-events)="[^"]*"')
_PLACES = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"\d+\.\d{2,}")
_FRAME = re.compile(
    r'width="([\d.]+)" height="([\d.]+)" viewBox="0 0 [\d. ]+"><rect width="[\d.]+"'
)
#: Room for letters that are wider where the picture is seen than where it was drawn.
MARGIN = 28


def slim(svg: str) -> str:
    """The same picture: no invisible marks, no labels of single marks, coordinates to 0.1."""
    svg = _INVISIBLE.sub("", svg)
    svg = _SPOKEN.sub("", svg)
    return _PLACES.sub(lambda place: _LONG.sub(_rounded, place[0]), svg)


def roomy(svg: str) -> str:
    """The same picture with a margin on its left and right."""

    def wider(frame: re.Match[str]) -> str:
        width, height = float(frame[1]) + 2 * MARGIN, float(frame[2])
        return (
            f'width="{width:g}" height="{height:g}" viewBox="{-MARGIN} 0 {width:g} {height:g}">'
            f'<rect x="{-MARGIN}" width="{width:g}"'
        )

    return _FRAME.sub(wider, svg, count=1)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")
