"""The quick cases of a grid have all that the grid has."""

import itertools

import pytest
from grids import chosen, covering, slow_but

AGENTS, CONTEXTS = ("a", "b", "c", "d"), ("disjoint", "shared")


def quick(params: list[object]) -> list[tuple[object, ...]]:
    return [p.values for p in params if not p.marks]  # type: ignore[attr-defined]


@pytest.mark.parametrize("agents", [AGENTS, (*AGENTS, "new")], ids=["as it is", "one more"])
def test_every_value_of_every_axis_is_quick_once(agents: tuple[str, ...]) -> None:
    cases = covering(itertools.product(agents, CONTEXTS))
    assert len(cases) == 2 * len(agents), "no case is lost"
    assert [name for name, _ in quick(cases)] == list(agents)
    shares = [sum(c == context for _, c in quick(cases)) for context in CONTEXTS]
    assert max(shares) - min(shares) <= 1


def test_features_are_covered_with_few_cases() -> None:
    found = chosen(["lmc", "fglmc", "plmc", "pfgmala"], set)
    assert set("".join(found)) == set("lmcfgpa")
    assert found == ["pfgmala", "lmc"]


def test_what_is_named_must_be_in_the_grid() -> None:
    cases = slow_but([("a", "shared")], itertools.product(AGENTS, CONTEXTS))
    assert quick(cases) == [("a", "shared")]
    with pytest.raises(AssertionError, match="not in the grid"):
        slow_but(["e"], AGENTS)
