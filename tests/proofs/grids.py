"""Grids of cases: a few are quick tests, `make test-all` has the rest."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow_but(quick: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases, strings or tuples of them; those that are not in `quick` as slow tests."""
    chosen, every = set(quick), list(cases)
    assert chosen <= set(every), "a quick case that is not in the grid"
    out = []
    for case in every:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if case in chosen else pytest.mark.slow
        out.append(pytest.param(*values, marks=marks, id="-".join(map(str, values))))
    return out
