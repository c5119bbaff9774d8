"""Inner steps of networks on an accelerator, in two ways: operation by operation, and as programs.

    python bench/gpu_networks.py                        # on the device that JAX finds
    python bench/gpu_networks.py --chains 2 --steps 2   # anywhere, to try the script itself

For each network of the paper's data sets, without and with a bonus, a step is the gradient on a
batch and the move of a Langevin chain. Microseconds per step of all chains together are printed,
with how far the gradients of the two ways are apart; `--tune` tries several ways to spread programs
over threads, `--profile` says which kernels the steps of the wide networks spend their time in.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from feelgood import AGENTS
from feelgood.core.spec import Layout, Spec
from feelgood.targets import network_programs, network_tiles
from feelgood.targets.network_energy import NetworkEnergy
from feelgood.targets.network_tiles import TileThreads
from feelgood.targets.networks import Network
from feelgood.targets.replay import Batch

#: Arms, dimensions, layers, batch.
NETWORKS: dict[str, tuple[int, int, tuple[int, ...], int]] = {
    "adult": (2, 14, (100,), 256),
    "magic": (2, 10, (20, 20, 20), 256),
    "shuttle": (7, 9, (50, 50, 50), 256),
    "jester": (8, 32, (100, 50, 25), 256),
    "covertype": (7, 54, (100,), 256),
    "restaurant": (130, 18, (100,), 256),
}
WIDE: dict[str, tuple[int, int, tuple[int, ...], int]] = {
    "mnist": (10, 784, (100, 50), 500),
    "cifar10": (10, 3072, (100, 50), 256),
}
#: As many as tables of them ask for.
WIDE_CHAINS = {"mnist": 20, "cifar10": 5}
#: Constants of the programs that may be others than they are: picks per tile, warps, stages.
SPREADS: dict[str, dict[str, Any]] = {
    "programs": {},
    "first 32/4": {"FIRST_LAYER": TileThreads(32, 4)},
    "first 32/8": {"FIRST_LAYER": TileThreads(32, 8)},
    "first 16/4": {"FIRST_LAYER": TileThreads(16, 4)},
    "first 64/4": {"FIRST_LAYER": TileThreads(64, 4)},
    "products 2": {"PRODUCTS": 2},
    "products 8": {"PRODUCTS": 8},
    "terms 64": {"TERMS": 64},
    "others 64/4": {"OTHER_LAYERS": TileThreads(64, 4)},
    "others 16/4": {"OTHER_LAYERS": TileThreads(16, 4)},
    "blocks 32/8": {"FIRST_BLOCKS": TileThreads(32, 8)},
    "blocks 64/4": {"FIRST_BLOCKS": TileThreads(64, 4)},
    "blocks 32/4": {"FIRST_BLOCKS": TileThreads(32, 4)},
    "scores 64/4": {"ALL_SCORES": TileThreads(64, 4)},
    "scores 64/8": {"ALL_SCORES": TileThreads(64, 8)},
    "scored 16": {"SCORED_ARMS": 16},
    "scored 4": {"SCORED_ARMS": 4},
}


class Steps:
    """Chains of one network with a batch for each step."""

    def __init__(self, name: str, bonus: bool, chains: int, steps: int) -> None:
        arms, dim, layers, size = (NETWORKS | WIDE)[name]
        spec = Spec(arms=arms, dim=dim)
        self.network = Network(spec=spec, layers=layers, activation="leaky", exact=False)
        kind: Any = AGENTS["fglmcts"].build({"lam": 0.1, "b": 1.0})
        self.bonus = kind.bonus if bonus else None
        self.steps, self.size = steps, size
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(chains, size, dim)) / np.sqrt(dim)
        self.args = (
            Batch(
                contexts=jax.vmap(jax.vmap(self.network.row))(jnp.asarray(rows, jnp.float32)),
                arms=jnp.asarray(np.sort(rng.integers(0, arms, (chains, size))), jnp.int32),
                rewards=jnp.asarray(rng.integers(0, 2, (chains, size)), jnp.float32),
                counts=jnp.ones((chains, size)),
                numbers=jnp.tile(jnp.arange(size), (chains, 1)),
            ),
            jnp.asarray(rng.normal(size=(chains, self.network.parameters)) * 0.1, jnp.float32),
            jnp.asarray(rng.normal(size=(chains, self.network.parameters)), jnp.float32),
        )

    def energy(self, steps: Any) -> NetworkEnergy:
        spec = dataclasses.replace(
            self.network.spec, layout=Layout(steps=steps, reads_all=jax.default_backend() != "cpu")
        )
        network = dataclasses.replace(self.network, spec=spec)
        return NetworkEnergy(network, jnp.ones(()), jnp.ones(()), self.bonus, "squared")

    def gradient(self, steps: Any) -> jax.stages.Lowered:
        energy = self.energy(steps)

        def one(batch: Batch, theta: jax.Array, normal: jax.Array) -> jax.Array:
            del normal
            return energy.data_term(batch, theta)[1]

        return jax.jit(jax.vmap(one)).lower(*self.args)

    def walk(self, steps: Any) -> jax.stages.Lowered:
        energy = self.energy(steps)

        def chain(batch: Batch, theta: jax.Array, normal: jax.Array) -> jax.Array:
            def one(i: jax.Array, theta: jax.Array) -> jax.Array:
                slope = energy.data_term(batch, theta)[1] + 2.0 * theta
                return theta - 1e-6 * slope + 1e-4 * normal

            theta, normal = self.network.widened(theta), self.network.widened(normal)
            return lax.fori_loop(0, self.steps, one, theta, unroll=5)

        return jax.jit(jax.vmap(chain)).lower(*self.args)

    def timed(self, program: jax.stages.Compiled) -> float:
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            jax.block_until_ready(program(*self.args))
            best = min(best, time.perf_counter() - began)
        return round(1e6 * best / self.steps, 1)


def ways(options: argparse.Namespace) -> dict[str, tuple[Any, dict[str, Any]]]:
    """How steps of a network are carried out: a label, `Layout.steps`, and how it is spread."""
    apart = "interpreted" if jax.default_backend() == "cpu" else "apart"
    programs = {name: (apart, own) for name, own in SPREADS.items() if options.tune or not own}
    return {"together": ("together", {}), **programs}


def lowered(steps: Steps, way: Any, threads: dict[str, Any]) -> list[jax.stages.Lowered]:
    """The walk and the gradient in this way."""
    with contextlib.ExitStack() as stack:
        for name, own in threads.items():
            place = network_programs if hasattr(network_programs, name) else network_tiles
            stack.enter_context(mock.patch.object(place, name, own))
        return [steps.walk(way), steps.gradient(way)]


def compiled(programs: list[jax.stages.Lowered]) -> list[jax.stages.Compiled] | str:
    """All of them, or what went wrong."""
    try:
        return [program.compile() for program in programs]
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def profile(steps: Steps, program: jax.stages.Compiled, folder: Path) -> dict[str, float]:
    """Microseconds per step by kernel."""
    with jax.profiler.trace(str(folder)):
        jax.block_until_ready(program(*steps.args))
    [file] = folder.rglob("*.xplane.pb")
    times: Counter[str] = Counter()
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        for line in plane.lines if "GPU" in plane.name else ():
            for event in line.events if "Stream" in line.name else ():
                times[event.name[:60]] += event.duration_ns / 1e3 / steps.steps
    return {key: round(value, 2) for key, value in times.most_common(14)}


def measured(
    steps: Steps, label: str, found: dict[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    """Times and differences of all ways that could be compiled."""
    out: dict[str, Any] = {}
    plain = None
    for way, programs in found.items():
        if isinstance(programs, str):
            out[way] = programs
            continue
        walk, gradient = programs
        out[way] = steps.timed(walk)
        got = np.asarray(gradient(*steps.args))
        plain = got if plain is None else plain
        if got is not plain:
            out[f"{way} off"] = float(np.abs(got - plain).max() / np.abs(plain).max())
        if options.profile and way in ("together", "programs"):
            out[f"{way} kernels"] = profile(steps, walk, Path(f"/tmp/profile/{label}-{way}"))
    return out


def main() -> int:
    """Print a line per network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--only", default=",".join(NETWORKS), help="networks, by commas")
    parser.add_argument("--out", type=Path, default=Path("bench/results/gpu-networks.json"))
    options = parser.parse_args()
    facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    report: dict[str, Any] = {"facts": facts}
    places = [options.out]
    if "OUT" in os.environ:
        places.append(Path(os.environ["OUT"]) / options.out.name)
    problems = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in options.only.split(","):
            for bonus in (False, True):
                chains = WIDE_CHAINS.get(name, options.chains)
                steps = Steps(name, bonus, chains, options.steps)
                found = {
                    label: pool.submit(compiled, lowered(steps, *way))
                    for label, way in ways(options).items()
                }
                problems[f"{name}{' bonus' if bonus else ''}"] = steps, found
        for label, (steps, found) in problems.items():
            try:
                done = {way: future.result() for way, future in found.items()}
                report[label] = measured(steps, label, done, options)
            except Exception:
                report[label] = traceback.format_exc()[-1500:]
            print(label, json.dumps(report[label]), flush=True)
            for place in places:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
