"""Functions that upper rooms provide: found by name, and only when they are asked for."""

import subprocess
import sys
from types import ModuleType

import pytest

from feelgood import FeelgoodError
from feelgood.core.lookup import PRESETS, Lookup


def test_the_module_is_imported_at_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Lookup = Lookup("greeting", "some_upper_room")
    with pytest.raises(ModuleNotFoundError):
        list(found)
    monkeypatch.setitem(sys.modules, "some_upper_room", ModuleType("some_upper_room"))

    @found.register("hello")
    def hello(name: str) -> str:
        return f"hello {name}"

    assert list(found) == ["hello"]
    assert found["hello"]("you") == "hello you" == hello("you")
    with pytest.raises(FeelgoodError, match="unknown greeting 'helo': did you mean 'hello'"):
        found["helo"]


def test_presets_are_those_of_the_paper_and_of_earlier_versions() -> None:
    assert set(PRESETS) == {
        *("paper", "paper-beta1", "paper-beta1-appendix", "paper-equal-beta"),
        *("beta-1", "constant-bonus"),
        *("released", "released-beta1", "released-beta1-appendix", "released-equal-beta"),
    }


def test_a_lookup_imports_nothing_by_itself() -> None:
    program = "import sys, feelgood.core.lookup, feelgood.engine.building, feelgood.studies.files\n"
    program += "upper = ('feelgood.paper', 'feelgood.report', 'feelgood.api', 'feelgood.cli')\n"
    program += "assert not [m for m in sys.modules if m.startswith(upper)]"
    subprocess.run([sys.executable, "-c", program], check=True)
