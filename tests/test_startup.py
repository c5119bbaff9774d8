"""What is imported when, and what Ctrl-C does before anything has begun."""

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
from types import ModuleType

import pytest

import feelgood

#: Packages that take long to import; none of them is needed to print a help text.
HEAVY = {"jax", "jaxlib", "equinox", "numpy", "pyarrow", "altair", "blackjax", "scipy"}


def imported(program: str, *arguments: str) -> set[str]:
    """The top-level packages that a fresh Python has imported after this program."""
    show = "import sys, json, atexit\n"
    show += "atexit.register(lambda: print('\\n' + json.dumps(sorted(sys.modules))))\n"
    done = subprocess.run(
        [sys.executable, "-c", show + program, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


COMMAND = "import feelgood.cli\nfeelgood.cli.main()"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["study", "run", "--help"]])
def test_help_needs_no_jax(arguments: list[str]) -> None:
    assert imported(COMMAND, *arguments) & HEAVY == set()


def test_the_package_alone_needs_no_jax_and_its_names_do() -> None:
    assert imported("import feelgood; dir(feelgood); feelgood.FeelgoodError") & HEAVY == set()
    assert "jax" in imported("import feelgood; feelgood.run")


def test_every_public_name_is_there() -> None:
    assert {"run", "AGENTS", "Policy", "setting", "simulate"} <= set(feelgood.__all__)
    assert set(feelgood.__all__) <= set(dir(feelgood))
    for name in feelgood.__all__:
        assert not isinstance(getattr(feelgood, name), ModuleType), name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = feelgood.nonsense  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from feelgood import nonsense  # type: ignore[attr-defined]  # noqa: F401


def test_a_module_does_not_hide_the_public_name_that_it_shares() -> None:
    """`feelgood.simulate` is the function, whatever was imported before."""
    program = "import feelgood.engine.simulation, feelgood\nassert callable(feelgood.simulate)"
    program += "\nfrom feelgood import simulate\nassert callable(simulate)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_registries_are_full_at_the_first_look() -> None:
    program = "from feelgood import AGENTS, TESTBEDS\n"
    program += "assert 'lints' in AGENTS and 'linear-20' in TESTBEDS"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_submodules_are_there_without_an_import_of_their_own() -> None:
    for module in pkgutil.iter_modules(feelgood.__path__):
        if module.name not in feelgood.__all__ and module.name != "__main__":
            there = getattr(feelgood, module.name)
            assert there is importlib.import_module(f"feelgood.{module.name}")


#: Sends Ctrl-C to itself when a certain module is about to be imported.
INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
module = sys.argv[1]
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from feelgood.cli import main
sys.argv = ["feelgood", "run", "linear-20", "lints", "--rounds", "5", "--seeds", "1"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
@pytest.mark.parametrize("module", ["typer", "rich.table", "jax._src.core", "feelgood.api.running"])
def test_ctrl_c_during_import_shows_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert done.returncode in (130, -signal.SIGINT)
    assert (done.stdout, done.stderr) == ("", "")


def test_python_sees_xla_flags_before_jax() -> None:
    program = "import os, sys, feelgood\n"
    program += "assert 'jax' not in sys.modules\nprint(os.environ['XLA_FLAGS'])"
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert "small_while_loop_byte_threshold" in done.stdout
