"""What is used of a package is imported: nothing rests on what something else happened to load.

In a test's own process most of a package is loaded already, so all of this looks at fresh ones.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from feelgood.core.arrow import MODULES

ROOT = Path(__file__).parents[1]
#: Packages of which a part is there only once somebody has imported it.
LAZY = ("pyarrow", "scipy", "importlib", "concurrent", "xml", "rich")

#: Imports a package in a child of its own and prints what it then lacks. Standard input has one
#: line per package: its name, what files import beneath it, and what these files use of it.
CHECK = """
import importlib, os, sys
for line in sys.stdin.read().splitlines():
    package, imported, used = line.split("\\t")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        for name in (package, *imported.split()):
            importlib.import_module(name)
        module = sys.modules[package]
        lacking = [name for name in used.split() if not hasattr(module, name)]
        os.write(write, " ".join(lacking).encode())
        os._exit(0)
    os.close(write)
    for name in os.read(read, 65536).decode().split():
        print(f"{package}.{name} beside {imported}")
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0, line
"""


def uses_of(file: Path) -> dict[str, tuple[set[str], set[str]]]:
    """By package: the modules beneath it that a file imports, and the attributes that it uses."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: dict[str, str] = {}
    imported: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for entry in node.names:
                top = entry.name.split(".")[0]
                names[entry.asname or top] = entry.name if entry.asname else top
                imported[top].add(entry.name)
        elif isinstance(node, ast.ImportFrom) and node.module == "feelgood.core.arrow":
            for entry in node.names:
                names[entry.name] = MODULES[entry.name]
                imported["pyarrow"].add(MODULES[entry.name])
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported[node.module.split(".")[0]].add(node.module)
    used: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            package = names.get(node.value.id)
            if package:
                used[package].add(node.attr)
    return {p: (imported[p.split(".")[0]], attributes) for p, attributes in used.items()}


def test_every_module_imports_what_it_uses() -> None:
    """`pyarrow.compute` was used and not imported: a command failed where nobody had loaded it."""
    together: dict[tuple[str, str], set[str]] = defaultdict(set)
    for folder in ("src", "showdown"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for package, (imported, used) in uses_of(file).items():
                if package.split(".")[0] in LAZY:
                    together[package, " ".join(sorted(imported))] |= used
    lines = [
        "\t".join((package, imported, " ".join(sorted(used))))
        for (package, imported), used in together.items()
    ]
    assert any("pyarrow.compute" in line for line in lines)
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_pyarrow_has_one_door() -> None:
    """Elsewhere an import would fail with a traceback where the extra `files` is not installed."""
    found = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        types = [
            n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
        ]
        only_types = {id(inner) for block in types for inner in ast.walk(block)}
        for node in ast.walk(tree):
            named = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if id(node) not in only_types and any(n.split(".")[0] == "pyarrow" for n in named):
                found.append(file.name)
    assert found == []
