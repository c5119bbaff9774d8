"""The house: files and functions of a size one can hold in the head, one name for one thing.

Only the source is read; nothing is imported. Exceptions have a reason each, and one that is no
longer needed is refused: a list of them can only shrink.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).parent
HOUSE = TESTS.parent / "src" / "feelgood"

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60

LONG_FILES: dict[str, str] = {}

LONG_FUNCTIONS: dict[str, str] = {}

#: Public names that two modules define. Commands need no entry: a command is called what it does.
SHARED_NAMES: dict[str, str] = {
    "main": "the entry point of a program: the command line, and a worker's own process",
}

#: Files of the same name in two rooms. One of `cli` is called after its command, one of
#: `report/charts` after its chart.
SHARED_FILES: dict[str, str] = {}

#: Folders of tests that are no rooms, and rooms without tests of their own.
ODD_TESTS: dict[str, str] = {
    "proofs": "the laws of samplers and targets, which need both and share grids and levels",
}


@functools.cache
def sources() -> dict[str, ast.Module]:
    """Every module of the package, by its path."""
    return {
        file.relative_to(HOUSE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(HOUSE.rglob("*.py"))
    }


def rooms() -> set[str]:
    return {path.split("/")[0] for path in sources() if "/" in path}


def compare_with(exceptions: Mapping[str, str], found: Mapping[str, object], remedy: str) -> None:
    """What was found are the exceptions, no more and no fewer."""
    new = {name: what for name, what in found.items() if name not in exceptions}
    assert not new, f"{remedy}: {new}"
    idle = sorted(set(exceptions) - set(found))
    assert not idle, f"exceptions that are not needed any more: {idle}"
    assert all(exceptions.values())


def is_command(node: ast.stmt) -> bool:
    """Whether a function is a command: it has a decorator such as `@app.command("run")`."""
    decorators = getattr(node, "decorator_list", [])
    calls = [one.func for one in decorators if isinstance(one, ast.Call)]
    return any(isinstance(one, ast.Attribute) and one.attr == "command" for one in calls)


def is_type_variable(value: ast.expr | None) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in ("TypeVar", "ParamSpec")
    )


def public_names(tree: ast.Module) -> set[str]:
    """The classes, functions and constants that a module defines for others."""
    out: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            out |= set() if is_command(node) else {node.name}
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not is_type_variable(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            out |= {
                one.id
                for target in targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name)
            }
    return {name for name in out if not name.startswith("_")}


def in_several(homes: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_no_file_is_long() -> None:
    lines = {
        path: len((HOUSE / path).read_text(encoding="utf-8").splitlines()) for path in sources()
    }
    found = {path: count for path, count in lines.items() if count > MOST_LINES_OF_A_FILE}
    compare_with(LONG_FILES, found, f"cut files above {MOST_LINES_OF_A_FILE} lines into two")


def test_no_function_is_long() -> None:
    found = {
        f"{path} {node.name}": lines
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    }
    limit = f"cut functions above {MOST_LINES_OF_A_FUNCTION} lines, docstring included"
    compare_with(LONG_FUNCTIONS, found, limit)


def test_no_public_name_means_two_things() -> None:
    homes = defaultdict(list)
    for path, tree in sources().items():
        for name in public_names(tree):
            homes[name].append(path)
    compare_with(SHARED_NAMES, in_several(homes), "rename, or underscore what nobody imports")


def test_no_file_name_means_two_things() -> None:
    homes = defaultdict(list)
    for path in sources():
        if not path.endswith("__init__.py") and not path.startswith(("cli/", "report/charts/")):
            homes[Path(path).name].append(path)
    compare_with(SHARED_FILES, in_several(homes), "give the file of each room its own name")


def test_every_folder_says_what_lives_there() -> None:
    for folder in {Path(path).parent for path in sources()}:
        own = (folder / "__init__.py").as_posix()
        assert own in sources(), f"{own} is missing"
        assert ast.get_docstring(sources()[own]), f"{own} says nothing"


def test_tests_mirror_the_rooms() -> None:
    tested = {file.parent.name for file in TESTS.glob("*/test_*.py")}
    odd = {name: "" for name in tested ^ rooms()}
    compare_with(ODD_TESTS, odd, "a room has a folder of tests of the same name")


def test_the_checks_can_fail() -> None:
    tree = ast.parse(
        "import a\nX, (Y, _z) = 1\nW: int = 2\nT = TypeVar('T')\n"
        "class C: inner = 1\n@app.command('run')\ndef run(): pass\nasync def f(): pass\n"
    )
    assert public_names(tree) == {"X", "Y", "W", "C", "f"}
