"""The exact four-λ sweep of `fglmcts` on an accelerator: 100 seeds, 400 chains in one program.

    python bench/gpu_sweep.py                      # on the device that JAX finds
    python bench/gpu_sweep.py --seeds 2 --rounds 60 --draws 1   # anywhere, to try the script itself

The inner steps of a round are carried out in two ways: each operation for all chains together, and
as one program per chain (`feelgood.numerics.chain_programs`). The script

1. draws with both from the same states and random numbers, and compares what they draw,
2. times draws with 5,000 rounds behind them, for several ways to spread a program over threads,
3. runs the whole sweep in both ways, and as programs with XLA's graphs of kernels,
4. runs the sweep on linear-40 as programs, if there is time left.

A part that fails says so, with the whole error, and the others go on. After `--budget` seconds no
new part begins. Prints a line per result and one JSON text at the end, which also goes to the file
given with `--out` and into the folder that the variable OUT names, if it is set.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from feelgood.api.running import run
from feelgood.core.policy import Policy
from feelgood.core.spec import Layout
from feelgood.core.testbed import Testbed
from feelgood.engine import device, plan
from feelgood.engine.building import build_testbed, make_variants, with_preset
from feelgood.engine.compiling import in_own_precision
from feelgood.engine.simulation import stack_settings
from feelgood.numerics import chain_programs, generator, lanes
from feelgood.numerics.keys import AnyKey, LaneKeys, fold_in

LAMBDAS = [0.01, 0.1, 0.5, 1.0]
STEPS = 25
ON_CPU = jax.default_backend() == "cpu"
#: The two ways; on a CPU programs are interpreted.
TOGETHER, APART = "together", "interpreted" if ON_CPU else "apart"
#: Testbed, agent and settings whose draws are compared.
CHECKED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("linear-20", "fglmcts", {}),
    ("linear-20", "fglmcts", {"b": 0.5, "lam_schedule": "sqrt"}),
    ("linear-20", "sfglmcts", {"b": 0.5}),
    ("linear-40", "fglmcts", {}),
    ("linear-20", "fgmalats", {"warmup_steps": 0}),
)
THREADS = ((256, 4), (128, 4), (512, 4), (256, 8), (512, 8), (256, 2))
#: Asks XLA to launch kernels, and loops of them, as graphs.
GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUSTOM_CALL,WHILE --xla_gpu_graph_min_graph_size=1"


@contextlib.contextmanager
def carried_out(steps: Any) -> Iterator[None]:
    """Runs carry out their steps so, as on an accelerator."""

    def layout_of(chains: int, settings: int) -> Layout:
        return Layout(chains=chains, settings=settings, reads_all=True, unroll=5, steps=steps)

    with (
        mock.patch.object(plan, "layout_of", layout_of),
        mock.patch.object(device, "on_accelerator", lambda: True),
        mock.patch.object(device, "memory_limit", lambda: None),
    ):
        yield


@contextlib.contextmanager
def spread_over(tile: int, warps: int) -> Iterator[None]:
    """Programs have tiles of this length and so many times 32 threads."""
    threads = chain_programs.Threads(tile, warps)
    with mock.patch.object(chain_programs, "THREADS", threads):
        yield


class Drawing:
    """Chains of an agent with some rounds behind them, for every λ and seed."""

    def __init__(self, testbed: str, agent: str, settings: dict[str, Any], seeds: int, room: int):
        name, bed, _ = build_testbed(testbed)
        values = with_preset("paper", agent, {"lam": LAMBDAS, **settings}, name, bed.spec, room)
        stacked, swept = stack_settings([one.policy for one in make_variants(agent, values)])
        leaves, structure = jax.tree.flatten(stacked)
        for_chains = [
            jnp.repeat(x, seeds, axis=0) if own else x for x, own in zip(leaves, swept, strict=True)
        ]
        self.policy: Policy = jax.tree.unflatten(structure, for_chains)
        self.bed: Testbed = bed
        self.seeds, self.room, self.chains = seeds, room, seeds * len(LAMBDAS)
        keys = jax.vmap(generator.key)(jnp.arange(seeds))
        self.keys = LaneKeys(keys=keys, settings=len(LAMBDAS))

    def state(self, steps: Any, rounds: int) -> Any:
        """After so many rounds with random contexts, arms and rewards."""
        layout = Layout(chains=self.chains, settings=len(LAMBDAS), reads_all=True, steps=steps)
        spec = dataclasses.replace(self.bed.spec, layout=layout)

        def learn(policy: Policy, keys: AnyKey) -> Any:
            state = policy.reserve(policy.init(keys, spec), self.room)

            def one(t: jax.Array, state: Any) -> Any:
                numbers = lanes.normal(fold_in(keys, t + 1), spec.dim + 1)
                arm = lanes.randint(fold_in(keys, t + 1), 1, spec.arms)[0]
                return policy.update(state, numbers[:-1], arm, numbers[-1])

            return lax.fori_loop(0, rounds, one, state)

        return jax.jit(learn)(self.policy, self.keys)

    def program(self, draws: int) -> Callable[[Policy, AnyKey, Any], Any]:
        """Compiles to `draws` draws, one after the other."""

        def draw(policy: Policy, keys: AnyKey, state: Any) -> Any:
            def one(t: jax.Array, state: Any) -> Any:
                return policy.draw(fold_in(keys, t), state)

            return lax.fori_loop(0, draws, one, state).chain.theta

        return jax.jit(draw)


@in_own_precision
def checked(testbed: str, agent: str, settings: dict[str, Any], seeds: int, rounds: int) -> Any:
    """How far a draw as programs is from the same draw of all chains together."""
    drawing = Drawing(testbed, agent, settings, seeds, room=max(512, 2 * rounds))
    found = []
    for steps in (TOGETHER, APART):
        state = drawing.state(steps, rounds)
        found.append(np.asarray(drawing.program(1)(drawing.policy, drawing.keys, state)))
    together, apart = found
    moved = np.abs(together - np.asarray(state.chain.theta)).max()
    return {
        "what": f"{agent} on {testbed} {settings or ''}".strip(),
        "chains": drawing.chains,
        "rounds": rounds,
        "size": float(np.abs(together).max()),
        "moved": float(moved),
        "difference": float(np.abs(together - apart).max()),
        "finite": bool(np.isfinite(apart).all()),
    }


@in_own_precision
def timed(steps: Any, seeds: int, rounds: int, draws: int, testbed: str = "linear-20") -> Any:
    """Microseconds per inner step of draws with so many rounds behind them."""
    drawing = Drawing(testbed, "fglmcts", {}, seeds, room=max(512, 2 * rounds))
    args = (drawing.policy, drawing.keys, drawing.state(steps, rounds))
    began = time.perf_counter()
    program = drawing.program(draws).lower(*args).compile()  # type: ignore[attr-defined]
    compile_s = time.perf_counter() - began
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        jax.block_until_ready(program(*args))
        best = min(best, time.perf_counter() - began)
    return {"µs_per_step": round(1e6 * best / (draws * STEPS), 2), "compile_s": round(compile_s, 2)}


def swept(steps: Any, agent: str, seeds: int, rounds: int, testbed: str = "linear-20") -> Any:
    """The whole sweep: seconds, and the regret of every λ and seed."""
    settings = {agent: {"lam": LAMBDAS}} if "fg" in agent else {}
    with carried_out(steps):
        result = run(
            testbed, [agent], rounds=rounds, seeds=seeds, preset="paper", settings=settings
        )
    return {
        "agent": agent,
        "testbed": testbed,
        "steps": steps,
        "chains": sum(len(one.seeds) for one in result),
        "compile_s": round(result[0].compile_s, 2),
        "run_s": round(result[0].run_s, 2),
        "by_lam": {
            str(one.settings.get("lam")): [round(one.regret.mean, 2), round(one.regret.std, 2)]
            for one in result
        },
        "status": sorted({one.status for one in result}),
        "regrets": [[float(x) for x in one.final_regret] for one in result],
    }


def paired(one: Any, other: Any) -> dict[str, Any]:
    """The difference of two sweeps over the same seeds: its mean, in standard errors, by λ."""
    difference = np.asarray(one["regrets"]) - np.asarray(other["regrets"])
    error = difference.std(axis=1, ddof=1) / np.sqrt(difference.shape[1])
    means = difference.mean(axis=1)
    return {
        "mean": [round(float(x), 3) for x in means],
        "standard_errors": [round(float(x), 2) for x in means / np.maximum(error, 1e-12)],
        "same_chains": int((np.abs(difference) < 1e-2).sum()),
    }


class Report:
    """What was found, part by part."""

    def __init__(self, budget: float) -> None:
        self.began, self.budget = time.perf_counter(), budget
        facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
        self.found: dict[str, Any] = {"facts": facts | {"python": platform.python_version()}}

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a part of the work, if there is time for it, and keep what came out."""
        passed = time.perf_counter() - self.began
        if passed > self.budget:
            self.found[name] = f"not begun: {passed:.0f} s had passed"
            print(f"{name}: {self.found[name]}", flush=True)
            return None
        try:
            out = work()
        except Exception:
            self.found[name] = {"error": traceback.format_exc()}
            print(f"{name} FAILED\n{self.found[name]['error']}", flush=True)
            return None
        self.found[name] = out
        shown = {k: v for k, v in out.items() if k != "regrets"} if isinstance(out, dict) else out
        passed = time.perf_counter() - self.began
        print(f"[{passed:6.1f} s] {name}: {json.dumps(shown, ensure_ascii=False)}", flush=True)
        return out

    def write(self, out: Path) -> None:
        """One JSON text, without the single regrets."""
        self.found["seconds"] = round(time.perf_counter() - self.began, 1)
        for part in self.found.values():
            if isinstance(part, dict):
                part.pop("regrets", None)
        text = json.dumps(self.found, indent=1, ensure_ascii=False) + "\n"
        folders = [out.parent] + [Path(os.environ["OUT"])] * ("OUT" in os.environ)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / out.name).write_text(text, encoding="utf-8")
        print(text)


def with_graphs(options: argparse.Namespace) -> Any:
    """The sweep as programs in a process whose XLA launches graphs."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {GRAPHS}"
    command = [sys.executable, __file__, "--only-sweep", "--seeds", str(options.seeds)]
    command += ["--rounds", str(options.rounds)]
    done = subprocess.run(
        command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-6000:])
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Compare, time and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=40, help="draws that are timed at once")
    parser.add_argument("--budget", type=float, default=100.0, help="seconds to begin a part in")
    parser.add_argument("--only-sweep", action="store_true", help="one sweep as programs, as JSON")
    parser.add_argument("--out", type=Path, default=Path("bench/results/gpu-sweep.json"))
    options = parser.parse_args()
    seeds, rounds, half = options.seeds, options.rounds, options.rounds // 2
    if options.only_sweep:
        print(json.dumps(swept(APART, "fglmcts", seeds, rounds)))
        return
    report = Report(options.budget)
    for k, (bed, agent, settings) in enumerate(CHECKED):
        few = min(seeds, 25), min(half, 1500)
        report.part(f"check {k}", functools.partial(checked, bed, agent, settings, *few))
    fused = report.part("sweep apart", lambda: swept(APART, "fglmcts", seeds, rounds))
    plain = report.part("sweep together", lambda: swept(TOGETHER, "fglmcts", seeds, rounds))
    if fused and plain:
        report.part("apart - together", lambda: paired(fused, plain))
    for tile, warps in THREADS:
        with spread_over(tile, warps):
            report.part(
                f"draws apart, tile {tile}, {warps} warps",
                lambda: timed(APART, seeds, half, options.draws),
            )
    report.part("draws together", lambda: timed(TOGETHER, seeds, half, options.draws))
    report.part("sweep apart, graphs", lambda: with_graphs(options))
    report.part("sweep 40", lambda: swept(APART, "fglmcts", seeds, rounds, "linear-40"))
    for name, count in (("few", max(8, half // 50)), ("all", rounds)):
        work = functools.partial(timed, APART, seeds, count, options.draws)
        report.part(f"draws apart, {name} rounds", work)
    report.write(options.out)


if __name__ == "__main__":
    main()
