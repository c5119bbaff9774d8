"""Numbers and seeds as people write them: `10k`, `1e4`, `0:20`, `1,2,3`."""

import re
from decimal import Decimal

_NUMBER = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?(?:e\+?\d{1,3})?)([km]?)")
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
#: Seeds that a list of ranges may name: far more than any run takes.
_MOST = 1_000_000


def whole_number(text: str) -> int:
    """`10000`, `10,000`, `10_000`, `1e4` or `10k`; a `ValueError` for anything else.

    >>> from feelgood.core.texts import whole_number
    >>> [whole_number(text) for text in ("250", "1e4", "10k", "1.5M", "10,000")]
    [250, 10000, 10000, 1500000, 10000]
    """
    match = _NUMBER.fullmatch(text.strip().lower())
    if match is None or len(text) > 40:
        raise ValueError(text)
    number = Decimal(match[1].replace(",", "")) * _TIMES[match[2]]
    if number != int(number):
        raise ValueError(text)
    return int(number)


def seeds_in(text: str) -> range | list[int]:
    """`N` is 0 … N − 1, `A:B` is A … B − 1, `A,B,C` is a list, also of ranges; or a `ValueError`.

    >>> from feelgood.core.texts import seeds_in
    >>> [list(seeds_in(text)) for text in ("3", "5:7", "1,2,30", "0:2,8")]
    [[0, 1, 2], [5, 6], [1, 2, 30], [0, 1, 8]]
    """
    parts = [_range(part) for part in text.split(",")]
    if len(parts) == 1:
        return parts[0] if ":" in text else range(whole_number(text))
    if re.search(r"(^|,)\s*0\d", text):  # "10,000" is ten thousand, not the seeds 10 and 0
        raise ValueError(text)
    if any(not -_MOST < part.stop - part.start < _MOST for part in parts):
        raise ValueError(text)
    return [seed for part in parts for seed in part]


def _range(text: str) -> range:
    head, colon, tail = text.partition(":")
    first = whole_number(head)
    return range(first, whole_number(tail) if colon else first + 1)
