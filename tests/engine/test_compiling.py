"""Programs are compiled once per shape, in a process and across processes."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import feelgood
from feelgood.engine import compiling
from feelgood.testbeds import Linear

TINY = Linear(parameters=6, arms=3)

#: Runs two agents and prints what JAX's own events say: programs found, programs compiled.
COUNT = """
import collections, jax
seen = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: seen.update([event.rsplit("/", 1)[-1]]))
import feelgood
from feelgood.testbeds import Linear
result = feelgood.run(
    Linear(parameters=6, arms=3), ["lints", "linucb"], rounds=300, seeds=3,
    settings={"linucb": {"alpha": [0.5, 1.0]}},
)
print(seen["cache_hits"], seen["cache_misses"], result["lints"].final_regret.tolist())
"""


def count(cache: Path) -> list[str]:
    unset = {"JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"}
    env = {k: v for k, v in os.environ.items() if k not in unset}
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=env | {"FEELGOOD_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(maxsplit=2)


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits, misses, first = count(tmp_path)
    assert int(misses) > 5
    assert list((tmp_path / "programs").iterdir())
    hits, misses, second = count(tmp_path)
    assert int(misses) == 0
    assert int(hits) > 5
    assert first == second


def test_a_second_run_of_the_same_shape_compiles_nothing() -> None:
    first, second = (
        feelgood.run(TINY, ["lints"], rounds=200, seeds=2, settings={"lints": {"eta": [0.5, eta]}})
        for eta in (1.0, 2.0)
    )
    assert first[0].compile_s >= 0
    assert second[0].compile_s == 0
    assert second[0].run_s > 0


def test_other_values_of_a_testbeds_numbers_are_the_same_program() -> None:
    feelgood.run("wheel-0.3", ["uniform"], rounds=50, seeds=2)
    (again,) = feelgood.run("wheel-0.7", ["uniform"], rounds=50, seeds=2)
    assert again.compile_s == 0


def test_compiled_knows_a_program_by_its_shapes() -> None:
    def double(x: jax.Array) -> jax.Array:
        return 2 * x

    _, first = compiling.compiled(double, jnp.ones(3))
    program, again = compiling.compiled(double, jnp.zeros(3))
    _, other = compiling.compiled(double, jnp.ones(4))
    assert first > 0 and other > 0
    assert again == 0
    assert program(jnp.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_old_programs_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_PROGRAMS_KEPT", 2)
    monkeypatch.setattr(compiling, "_programs", type(compiling._programs)())
    for size in (1, 2, 1, 3):
        compiling.compiled(jnp.sin, jnp.ones(size))
    assert [key[2][0][0] for key in compiling._programs] == [(1,), (3,)]


@pytest.fixture
def cache_setting() -> object:
    """JAX's own setting, put back afterwards."""
    name = "jax_compilation_cache_dir"
    before = jax.config.values[name]
    yield name
    jax.config.update(name, before)


def test_the_users_own_cache_is_left_alone(
    cache_setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jax.config.update(cache_setting, str(tmp_path / "mine"))
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path / "feelgood"))
    compiling.keep_compiled_programs()
    assert jax.config.values[cache_setting] == str(tmp_path / "mine")
    assert not (tmp_path / "feelgood").exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owners here")
def test_programs_of_others_are_not_run(
    cache_setting: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FEELGOOD_CACHE", str(tmp_path))
    jax.config.update(cache_setting, None)
    folder = tmp_path / "programs"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        compiling.keep_compiled_programs()
    assert jax.config.values[cache_setting] is None
    assert f"{folder} belongs to another user; set FEELGOOD_CACHE" in capsys.readouterr().err
    compiling.keep_compiled_programs()
    assert jax.config.values[cache_setting] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o755, "nobody else writes there any more"


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    _, misses, _ = count(tmp_path / "file" / "cache")
    assert misses == "0"


def test_an_option_that_the_compiler_does_not_know_is_left_out() -> None:
    unknown = (("xla_backend_optimization_level", "1"), ("xla_cpu_no_such_option", True))
    program, _ = compiling.compiled(lambda x: x + 1.0, jnp.zeros(3), effort=unknown)
    assert program(jnp.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_other_errors_of_the_compiler_are_passed_on() -> None:
    wrong = (("xla_backend_optimization_level", "much"),)
    with pytest.raises(jax.errors.JaxRuntimeError, match="much"):
        compiling.compiled(lambda x: x + 2.0, jnp.zeros(3), effort=wrong)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_before(enabled: bool) -> None:
    """It rests while a program is compiled, and not longer, also where that fails."""
    seen = []

    def program(x: jax.Array) -> jax.Array:
        seen.append(gc.isenabled())
        return x.fail if x.ndim else x

    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        compiling.compiled(program, jnp.ones(()))
        with pytest.raises(AttributeError):
            compiling.compiled(program, jnp.ones(1))
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False, False]
