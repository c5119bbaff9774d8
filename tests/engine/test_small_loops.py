"""Small loops are compiled whole, unless the user has told XLA otherwise."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import feelgood
import jax
loop = jax.jit(lambda x: jax.lax.fori_loop(0, x[0].astype(int), lambda i, y: y * 0.5 + 1.0, x))
text = loop.lower(jax.numpy.zeros(4000)).compile().as_text()
print("xla_cpu_small_call" in text)
"""


@pytest.mark.parametrize(
    ("flags", "whole"),
    [
        pytest.param("", True, id="no flags"),
        pytest.param(
            "--xla_cpu_enable_fast_math=false", True, id="other flags", marks=pytest.mark.slow
        ),
        pytest.param(
            "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0",
            False,
            id="the user's own",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_small_loops_are_compiled_whole(flags: str, whole: bool) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "JAX_PLATFORMS": "cpu", **({"XLA_FLAGS": flags} if flags else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(whole)
