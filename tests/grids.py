"""Grids of cases: some are quick tests, `make test-all` has the rest.

No grid lists its quick cases by hand where `covering` can choose them: a new agent, kernel or
testbed then gets its quick test because it is there.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest

Features = Callable[..., Iterable[Hashable]]


def slow_but(quick: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases, strings or tuples of them; those that are not in `quick` as slow tests."""
    chosen, every = set(quick), list(cases)
    assert chosen <= set(every), "a quick case that is not in the grid"
    out = []
    for case in every:
        marks = () if case in chosen else pytest.mark.slow
        out.append(
            pytest.param(*_values(case), marks=marks, id="-".join(map(_text, _values(case))))
        )
    return out


def covering(cases: Iterable[Any], features: Features | None = None) -> list[Any]:
    """All cases; quick are a few that together have every feature that any case has.

    `features` takes the values of a case. By default each value at each place is a feature: of the
    product of some lists, every entry of every list is then in a quick case.
    """
    every = list(cases)
    return slow_but(chosen(every, features), every)


def chosen(cases: Iterable[Any], features: Features | None = None) -> list[Any]:
    """The quick cases of `covering`: at each step the first one with most features not yet had.

    Of several such cases it is the one whose other features were had least often.
    """
    have = {case: set((features or _places)(*_values(case))) for case in cases}
    had: Counter[Hashable] = Counter()
    out: list[Any] = []

    def worth(case: Any) -> tuple[int, int]:
        return sum(not had[f] for f in have[case]), -sum(had[f] for f in have[case])

    while any(not had[feature] for every in have.values() for feature in every):
        out.append(max(have, key=worth))
        had.update(have[out[-1]])
    return out


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


def _places(*values: Any) -> Iterable[Hashable]:
    return enumerate(values)


def _text(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value)
