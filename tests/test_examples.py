"""Every public name has a docstring with an example, and every example in the package runs."""

import ast
import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import feelgood

HOUSE = Path(feelgood.__file__).parent


def modules_with_examples() -> list[str]:
    """Modules whose source has a prompt in a docstring; nothing is imported."""
    found = []
    for file in sorted(HOUSE.rglob("*.py")):
        if ">>> " in file.read_text(encoding="utf-8"):
            found.append(".".join(("feelgood", *file.relative_to(HOUSE).with_suffix("").parts)))
    return found


def needs_of(name: str) -> str:
    """The foreign package that an adapter's module imports; empty: none."""
    tree = ast.parse(Path(HOUSE.parent, *name.split(".")).with_suffix(".py").read_text())
    tops = {n.module.split(".")[0] for n in tree.body if isinstance(n, ast.ImportFrom) and n.module}
    tops |= {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    return next(iter(sorted(tops & {"coba", "gymnasium"})), "")


@pytest.mark.parametrize("name", feelgood.__all__)
def test_a_public_name_says_what_it_is_and_shows_how_it_is_used(name: str) -> None:
    thing = getattr(feelgood, name)
    text = inspect.getdoc(thing) or ""
    assert text, name
    assert ">>> " in text, f"feelgood.{name} has no example"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if needs_of(module):
        pytest.importorskip(needs_of(module), reason=f"{needs_of(module)} is not installed")
    monkeypatch.chdir(tmp_path)
    loaded = importlib.import_module(module)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=options)
    finder = doctest.DocTestFinder()
    found = finder.find(loaded)
    for value in vars(loaded).values():  # what says that it lives elsewhere, such as an error
        if inspect.isclass(value) and value.__module__ == "feelgood":
            found += finder.find(value, module=False)
    for test in found:
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
