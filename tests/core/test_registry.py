"""Names to builders."""

import sys
from pathlib import Path

import equinox as eqx
import jax
import pytest

from feelgood.core.errors import FeelgoodError, did_you_mean
from feelgood.core.plugins import load_plugins
from feelgood.core.policy import AGENTS
from feelgood.core.registry import Registry
from feelgood.core.settings import setting
from feelgood.core.testbed import TESTBEDS


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


def test_a_name_may_have_plus_signs_and_no_spaces(registry: Registry[Thing]) -> None:
    registry.register("thing++")(OtherThing)
    assert registry["thing++"].name == "thing++"
    with pytest.raises(FeelgoodError, match=r"'a b' is not allowed: use letters, digits, dashes, "):
        registry.register("a b")(OtherThing)


def test_names_stand_below_the_headings_of_their_families(registry: Registry[Thing]) -> None:
    registry.register("large", family="Sizes")(OtherThing)
    assert registry.by_family(["large", "small"]) == {"Sizes": ["large"], "": ["small"]}


class OtherThing(Thing):
    """Another thing."""


def test_a_taken_name_is_refused(registry: Registry[Thing]) -> None:
    with pytest.raises(FeelgoodError, match="the thing name 'small' is taken"):
        registry.register("small")(OtherThing)
    assert registry["small"].doc == "A thing."


def test_the_same_thing_again_replaces_itself(registry: Registry[Thing]) -> None:
    registry.register("large")(OtherThing)
    registry.register("small", "As it is now.")(Thing)
    assert registry["small"].doc == "As it is now."
    assert registry.names() == ("small", "large")


CELL = '''
@things.register("mine")
class Mine(Thing):
    """{}"""
'''


def test_a_notebook_cell_may_run_twice(registry: Registry[Thing]) -> None:
    """A class of a notebook cell has no file: its module and its name tell that it is the same."""
    notebook = {"__name__": "__main__", "things": registry, "Thing": Thing}
    for text in ("As it was.", "As it is."):
        exec(CELL.format(text), notebook)
    assert registry["mine"].doc == "As it is."
    with pytest.raises(FeelgoodError, match="the thing name 'mine' is taken"):
        exec(CELL.format("").replace("Mine", "Yours"), notebook)


PLUGIN = '''
from feelgood.agents import LinTS
from feelgood.core.policy import AGENTS

@AGENTS.register("{name}")
class Mine(LinTS):
    """{doc}"""
'''


@pytest.fixture
def few_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(AGENTS, "_families", dict(AGENTS._families))
    monkeypatch.setattr(AGENTS, "_digests", {})


@pytest.mark.usefixtures("few_agents")
def test_a_plugin_is_loaded_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUGIN.format(name="mine", doc="As it was."))
    load_plugins([str(file)])
    first, digest = type(AGENTS["mine"].build()), AGENTS.digest("mine")
    load_plugins([str(file)])
    assert type(AGENTS["mine"].build()) is first, "its programs need not be compiled again"
    file.write_text(PLUGIN.format(name="mine", doc="As it is.."))
    load_plugins([str(file)])
    assert AGENTS["mine"].doc == "As it is.."
    assert AGENTS.digest("mine") not in (digest, None)
    other = tmp_path / "folder" / "mine.py"
    other.parent.mkdir()
    other.write_text(file.read_text())
    with pytest.raises(FeelgoodError, match="the agent name 'mine' is taken"):
        load_plugins([str(other)])


@pytest.mark.usefixtures("few_agents")
def test_a_plugin_takes_no_place_of_another_module(tmp_path: Path) -> None:
    import types

    file = tmp_path / "types.py"
    file.write_text(PLUGIN.format(name="typed", doc="A file with a bad name."))
    load_plugins([str(file)])
    assert "typed" in AGENTS
    assert sys.modules["types"] is types
    broken = tmp_path / "broken.py"
    broken.write_text("raise KeyError")
    before = set(sys.modules)
    with pytest.raises(FeelgoodError, match=r"could not be imported \(KeyError\): mend it"):
        load_plugins([str(broken)])
    assert set(sys.modules) == before


@pytest.mark.usefixtures("few_agents")
def test_the_source_of_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hash of a plug-in is of its file, or of all files of its package; ours have none."""
    assert AGENTS.digest("lints") is None and TESTBEDS.digest("linear-20") is None
    assert AGENTS.digest("nothing") is None
    package = tmp_path / "some_agents"
    package.mkdir()
    (package / "__init__.py").write_text("from some_agents import one")
    (package / "helper.py").write_text("x = 1")
    (package / "one.py").write_text(PLUGIN.format(name="packed", doc="Of a package."))
    monkeypatch.syspath_prepend(tmp_path)

    def digest() -> str | None:
        for name in [n for n in sys.modules if n.startswith("some_agents")]:
            monkeypatch.delitem(sys.modules, name)
        load_plugins(["some_agents"])
        return AGENTS.digest("packed")

    first = digest()
    assert first is not None and digest() == first
    (package / "helper.py").write_text("x = 2")
    assert digest() != first


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
