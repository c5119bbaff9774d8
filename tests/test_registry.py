"""Names to builders."""

import equinox as eqx
import jax
import pytest

from feelgood.errors import FeelgoodError, did_you_mean
from feelgood.protocols import AGENTS, TESTBEDS
from feelgood.registry import Registry
from feelgood.settings import setting


class Thing(eqx.Module):
    """A thing.

    With more to say about it.
    """

    size: jax.Array = setting(1.0, "how large", low=0.0)


@pytest.fixture
def registry() -> Registry[Thing]:
    things: Registry[Thing] = Registry("thing")
    things.register("small")(Thing)
    return things


def test_a_registered_class_is_built_by_name_and_settings(registry: Registry[Thing]) -> None:
    assert registry.names() == ("small",)
    assert "small" in registry and "smal" not in registry
    entry = registry["small"]
    assert entry.doc == "A thing."
    assert float(entry.build().size) == 1.0
    assert float(entry.build({"size": "2.5"}).size) == 2.5
    assert entry.resolve({"size": "2.5"}) == {"size": 2.5}
    with pytest.raises(FeelgoodError, match=r"small\.size = -1 is not allowed"):
        entry.build({"size": -1})


def test_a_taken_name_is_refused(registry: Registry[Thing]) -> None:
    with pytest.raises(FeelgoodError, match="the thing name 'small' is taken"):
        registry.register("small")(Thing)


def test_a_name_that_another_family_understands_is_refused() -> None:
    with pytest.raises(FeelgoodError, match="'linear-35' is taken"):
        TESTBEDS.register("linear-35")(Thing)  # type: ignore[type-var]
    with pytest.raises(FeelgoodError, match="'lints' is taken"):
        AGENTS.register("lints")(Thing)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("registry", "name", "meant"),
    [(AGENTS, "lint", "lints"), (AGENTS, "linUCB", "linucb"), (TESTBEDS, "liner-20", "linear-20")],
)
def test_an_unknown_name_gets_the_nearest_one(registry: Registry, name: str, meant: str) -> None:
    with pytest.raises(FeelgoodError) as caught:
        registry[name]
    assert f"unknown {registry.kind} '{name}': did you mean '{meant}'?" == str(caught.value)


def test_a_name_near_to_nothing_gets_the_list() -> None:
    assert did_you_mean("xyzzy", ["lints", "linucb"]) == "known: lints, linucb."
    many = did_you_mean("xyzzy", [f"a{i:02d}" for i in range(20)])
    assert many.endswith("a11, ….")


def test_a_registry_is_a_collection_of_names() -> None:
    for registry in (AGENTS, TESTBEDS):
        assert list(registry) == list(registry.names()) and len(registry) == len(list(registry))
        assert all(name in registry for name in registry)
    # Neither a name that makes no sense nor something else is in it.
    assert not any(wrong in AGENTS for wrong in ("nonsense", "ppuhmcts", 3, None, ["lints"]))
