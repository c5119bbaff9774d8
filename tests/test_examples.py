"""Every public name has a docstring with an example, and every example in the package runs.

Public is what the reference of the site shows: the names of `feelgood`, and what the guides import
from its modules. What is no class and no function, such as the type of an array, has no docstring.
"""

import ast
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import feelgood

HOUSE = Path(feelgood.__file__).parent
#: Packages of the adapters; where one is not installed, its examples are not run.
FOREIGN = ("coba", "gymnasium")


def public_things() -> dict[str, Any]:
    """Every public class and function, by where it is found."""
    from handbook.reference import imported_by_guides

    places = [("feelgood", name) for name in feelgood.__all__]
    places += [(m, n) for m, n in sorted(imported_by_guides()) if not is_foreign(m)]
    found = {f"{m}.{n}": getattr(importlib.import_module(m), n) for m, n in places}
    return {place: thing for place, thing in found.items() if is_documented(thing)}


def is_documented(thing: Any) -> bool:
    own = str(getattr(thing, "__module__", "")).startswith("feelgood")
    return own and (inspect.isclass(thing) or inspect.isroutine(thing))


def is_foreign(module: str) -> bool:
    return bool(needs_of(module)) and importlib.util.find_spec(needs_of(module)) is None


def modules_with_examples() -> list[str]:
    """Modules whose source has a prompt in a docstring; nothing is imported."""
    found = []
    for file in sorted(HOUSE.rglob("*.py")):
        if ">>> " in file.read_text(encoding="utf-8"):
            found.append(".".join(("feelgood", *file.relative_to(HOUSE).with_suffix("").parts)))
    return found


def needs_of(name: str) -> str:
    """The foreign package that an adapter's module imports; empty: none."""
    file = Path(HOUSE.parent, *name.split(".")).with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8") if file.exists() else "")
    nodes = list(ast.walk(tree))
    tops = {n.module.split(".")[0] for n in nodes if isinstance(n, ast.ImportFrom) and n.module}
    tops |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    return next(iter(sorted(tops & set(FOREIGN))), "")


@pytest.mark.filterwarnings("ignore")  # of packages that adapters import
def test_a_public_name_says_what_it_is_and_shows_how_it_is_used() -> None:
    things = public_things()
    assert {"feelgood.run", "feelgood.studies.Store", "feelgood.samplers.blocks.Kernel"} <= set(
        things
    )
    assert [place for place, thing in things.items() if not prompts(thing)] == []


CLASSES = [name for name in feelgood.__all__ if inspect.isclass(getattr(feelgood, name))]


@pytest.mark.parametrize("name", CLASSES)
def test_an_example_shows_every_method(name: str) -> None:
    """Of the classes of `feelgood` itself: in the class's own example, or in the method's."""
    from handbook.names import members

    cls = getattr(feelgood, name)
    shown = "\n".join(prompts(cls))
    for member, value in members(cls):
        assert inspect.getdoc(value), f"{name}.{member}"
        used = re.search(rf"\.{member}\b", shown) or list(prompts(value))
        assert used, f"no example shows {name}.{member}"


def prompts(thing: Any) -> list[str]:
    """The lines of Python in the examples of a docstring."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    return [line for line in lines if line.lstrip().startswith((">>> ", "... "))]


#: Runs all examples of the modules that it is given. They may register agents: hence a process of
#: its own. Prints one line of JSON: what failed, and how many lines were tried, by module.
RUN = """
import doctest, importlib, inspect, io, json, os, sys, tempfile
os.chdir(tempfile.mkdtemp())
options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
told = {}
for module in sys.argv[1:]:
    loaded = importlib.import_module(module)
    finder, said = doctest.DocTestFinder(), io.StringIO()
    runner = doctest.DocTestRunner(optionflags=options)
    found = finder.find(loaded)
    for value in vars(loaded).values():  # what says that it lives elsewhere, such as an error
        if inspect.isclass(value) and value.__module__ == "feelgood":
            found += finder.find(value, module=False)
    for test in found:
        runner.run(test, out=said.write)
    told[module] = (said.getvalue(), runner.tries)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, tuple[str, int]]:
    modules = [name for name in modules_with_examples() if not is_foreign(name)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *modules], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_run(module: str, told: dict[str, tuple[str, int]]) -> None:
    if is_foreign(module):
        pytest.skip(f"{needs_of(module)} is not installed")
    failed, tries = told[module]
    assert failed == ""
    assert tries > 0
