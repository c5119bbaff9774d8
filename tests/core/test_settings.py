"""Settings: what is allowed, what is refused, and what the refusal says."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.settings import check_settings, own_settings, setting, settings_of


class Component(eqx.Module):
    """One setting of every kind."""

    width: jax.Array = setting(0.5, "a number", low=0.0, high=2.0)
    rate: jax.Array = setting(1.0, "a positive number", above=0.0)
    steps: int = setting(25, "a whole number", low=1, high=100)
    flag: bool = setting(False, "a truth value")
    mode: str = setting("fast", "a choice", choices=("fast", "Exact"))
    other: int = eqx.field(static=True, default=3)


RULES = settings_of(Component)


def build(**values: object) -> Component:
    return Component(**check_settings("thing", RULES, values))


def test_fields_that_are_no_settings_are_left_alone() -> None:
    assert list(RULES) == ["width", "rate", "steps", "flag", "mode"]


def test_defaults_pass_their_own_rules() -> None:
    assert check_settings("thing", RULES, {}) == {n: r.default for n, r in RULES.items()}
    for name, rule in RULES.items():
        assert rule.check("thing", name, rule.default) == rule.default


def test_numbers_are_array_leaves_and_the_rest_is_static() -> None:
    leaves = jax.tree.leaves(build(width=1.5))
    assert [leaf.dtype for leaf in leaves] == [jnp.float32, jnp.float32]
    assert [float(leaf) for leaf in leaves] == [1.5, 1.0]


ALLOWED = [
    ("width", 0, 0.0),
    ("width", "2", 2.0),
    ("width", 1e-3, 1e-3),
    ("rate", "1e-9", 1e-9),
    ("steps", 1, 1),
    ("steps", "100", 100),
    ("steps", 7.0, 7),
    ("flag", True, True),
    ("flag", "TRUE", True),
    ("flag", "false", False),
    ("mode", "FAST", "fast"),
    ("mode", "exact", "Exact"),
]


@pytest.mark.parametrize(("name", "value", "expected"), ALLOWED)
def test_allowed(name: str, value: object, expected: object) -> None:
    checked = RULES[name].check("thing", name, value)
    assert checked == expected
    assert type(checked) is type(expected)


REFUSED = [
    ("width", -1e-9, "a finite number at least 0 and at most 2"),
    ("width", 2.0000001, "a finite number at least 0 and at most 2"),
    ("width", "nan", "a finite number at least 0 and at most 2"),
    ("width", float("inf"), "a finite number at least 0 and at most 2"),
    ("width", "wide", "a finite number at least 0 and at most 2"),
    ("width", None, "a finite number at least 0 and at most 2"),
    ("width", True, "a finite number at least 0 and at most 2"),
    ("width", 10**400, "a finite number at least 0 and at most 2"),
    ("width", [0.1], "a finite number at least 0 and at most 2"),
    ("rate", 0.0, "a finite number above 0"),
    ("steps", 0, "a whole number at least 1 and at most 100"),
    ("steps", 101, "a whole number at least 1 and at most 100"),
    ("steps", 1.5, "a whole number at least 1 and at most 100"),
    ("flag", "yes", "true or false"),
    ("flag", 1, "true or false"),
    ("mode", "slow", "one of fast, Exact"),
]


@pytest.mark.parametrize(("name", "value", "range_"), REFUSED)
def test_refused_with_name_value_and_range(name: str, value: object, range_: str) -> None:
    with pytest.raises(FeelgoodError) as caught:
        build(**{name: value})
    assert str(caught.value) == f"thing.{name} = {shown(value)} is not allowed: use {range_}."


def test_unknown_setting_gets_the_nearest_name() -> None:
    with pytest.raises(
        FeelgoodError, match=r"thing has no setting 'widht': did you mean 'width'\?"
    ):
        build(widht=1)
    with pytest.raises(FeelgoodError, match="it has no settings"):
        check_settings("thing", {}, {"a": 1})


def test_an_object_checks_its_settings_when_it_is_made() -> None:
    for name, value, range_ in REFUSED:
        with pytest.raises(FeelgoodError) as caught:
            Component(**{name: value})
        assert str(caught.value) == f"{name} = {shown(value)} is not allowed: use {range_}."
    with pytest.raises(FeelgoodError, match=r"width = array\(\[0.1, 0.2\]\) is not allowed"):
        Component(width=np.array([0.1, 0.2]))


def test_an_object_takes_what_is_allowed_in_any_form() -> None:
    for name, value, expected in ALLOWED:
        got = getattr(Component(**{name: value}), name)
        assert got == (jnp.float32(expected) if isinstance(expected, float) else expected)
    # Within a compiled program values are not known, and a copy keeps its bits.
    inside = jax.jit(lambda x: Component(width=x).width)(0.3)
    assert inside == dataclasses.replace(Component(width=0.3)).width == jnp.float32(0.3)


def test_own_settings_are_as_they_were_given() -> None:
    assert own_settings(Component(width=0.1, steps=7)) == {
        "width": 0.1,
        "rate": 1.0,
        "steps": 7,
        "flag": False,
        "mode": "fast",
    }


def test_a_number_that_single_precision_cannot_hold_is_named_without_an_owner() -> None:
    with pytest.raises(FeelgoodError, match=r"^rate = 1e-39 is not allowed: in single precision"):
        Component(rate=1e-39)


def test_a_range_to_be_searched_is_checked_where_it_is_declared() -> None:
    rule = settings_of(type("A", (eqx.Module,), _with(setting(1.0, "a", tune=(0.1, 10.0)))))["a"]
    assert rule.tune == (0.1, 10.0)
    for wrong in ((0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (-1.0, 1.0)):
        with pytest.raises(FeelgoodError, match=r"tune = .* use two numbers, 0 < low < high"):
            setting(1.0, "a", tune=wrong)
    for default in (3, True, "text"):
        with pytest.raises(FeelgoodError, match=r"tune = .* shapes no program"):
            setting(default, "a", tune=(0.1, 10.0))
    with pytest.raises(FeelgoodError, match=r"tune = 10\.0 is not allowed: use .* at most 2"):
        setting(1.0, "a", high=2.0, tune=(0.1, 10.0))


def _with(field: object) -> dict[str, object]:
    return {"a": field, "__annotations__": {"a": jax.Array}}
