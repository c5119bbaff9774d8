"""JAX's own switch to 64 bits changes nothing: runs, posteriors and studies are the same bits."""

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Coins

from feelgood.agents import LinTS
from feelgood.engine import compiling
from feelgood.engine.environment import environment
from feelgood.engine.simulation import simulate

#: Prints a digest of what runs and posteriors give; an agent per way of drawing and remembering.
SCRIPT = """
import hashlib, json, sys
import jax
import feelgood
from feelgood.posterior import analyse, calibrate

if "late" in sys.argv:
    jax.config.update("jax_enable_x64", True)
out = hashlib.sha256()
agents = ["uniform", "lints", "lmcts", "fglmcts", "neural-ts"]
quick = {"neural-ts": {"layers": "4", "updates": 2}, "fglmcts": {"steps": 2}}
for result in feelgood.run("linear-20", agents, rounds=30, seeds=2, settings=quick):
    out.update(result.final_regret.tobytes() + result.curve.tobytes())
result = feelgood.run("linear-20", ["lints"], rounds=30, seeds=2, posterior_every=20)
out.update(result["lints"].posterior.value["trace"].tobytes())
found = analyse(["lints", "lmcts"], testbed="linear-20", rounds=20, draws=40, chains=10, steps=2)
out.update(b"".join(agent.draws.tobytes() for agent in found.agents))
out.update(calibrate("lints", "linear-20", rounds=10, simulations=50).ranks.tobytes())
print("digest", out.hexdigest(), jax.config.jax_enable_x64)
"""


def digest(cache: Path, flag: str | None, *args: str) -> tuple[str, str]:
    environment = {**os.environ, "FEELGOOD_CACHE": str(cache)}
    environment.pop("JAX_ENABLE_X64", None)
    if flag is not None:
        environment["JAX_ENABLE_X64"] = flag
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *args],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, value, on = done.stdout.split()
    assert len(value) == hashlib.sha256().digest_size * 2
    return value, on


def test_a_run_is_in_its_own_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    def played() -> list[bytes]:
        monkeypatch.setattr(compiling, "_programs", type(compiling._programs)())
        outcome = simulate(Coins(), [LinTS(eta=1.0), LinTS(eta=2.0)], rounds=9, seeds=[3, 4])
        block = environment(Coins(), [3], 4)
        return [outcome.curve.tobytes(), *(np.asarray(x).tobytes() for x in block)]

    plain = played()
    jax.config.update("jax_enable_x64", True)
    try:
        assert played() == plain
        assert jnp.zeros(1).dtype == jnp.float64
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.slow
def test_64_bits_change_no_bit(tmp_path: Path) -> None:
    plain, off = digest(tmp_path, None)
    assert off == "False"
    for flag, args in (("1", ()), (None, ("late",))):
        other, on = digest(tmp_path, flag, *args)
        # What the user has switched on stays on for everything else.
        assert on == "True"
        assert other == plain
