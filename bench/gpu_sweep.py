"""The exact four-λ sweep of `fglmcts` on an accelerator: 100 seeds, 400 chains in one program.

    python bench/gpu_sweep.py                      # on the device that JAX finds
    python bench/gpu_sweep.py --shares             # in 100 s: where the time of the sweep goes
    python bench/gpu_sweep.py --spreads            # ways to spread a program over threads
    python bench/gpu_sweep.py --seeds 2 --rounds 60 --draws 1   # anywhere, to try the script itself

The inner steps of a round are carried out in two ways: each operation for all chains together, and
as one program per chain (`feelgood.numerics.chain_programs`). In this order, the script

1. compiles draws as programs and looks for the program in the text of the compiled code,
2. times draws with 5,000 rounds behind them in both ways,
3. draws with both from the same states and random numbers, and compares what they draw,
4. runs the whole sweep in both ways, and compares the regrets,
5. compares the draws of other agents, tries several ways to spread a program over threads, runs the
   sweep with XLA's graphs of kernels, and the sweep on linear-40 as programs.

With `--spreads` it times draws that are spread over threads in each of several ways, and runs the
sweep with the three quickest. Spread as usual, it times draws with few and with all rounds behind
them, and runs the sweep with one inner step per round and without graphs of kernels.

With `--shares` it runs the sweep as programs with 25 inner steps per round and with one, over all
rounds and over a fifth of them: what is left with one step is spent outside the steps. It runs it
with graphs of kernels, and times draws with few and with many rounds behind them, and with several
ways to spread a program over threads.

Where the program is not in the compiled code, of any part, there is nothing to compare: the script
says so and ends at once, but for `--shares`, with exit status 1. Another part that fails says so,
with the whole error; the others go on, and the exit status is 1. After `--budget` seconds no new
part begins, and after `--limit` seconds the script ends.

Prints a line per result. After every part, all results so far go to the file given with `--out` and
into the folder that the variable OUT names, if it is set.
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
import threading
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
from feelgood.engine import compiling, device, group, plan
from feelgood.engine.building import build_testbed, make_variants, with_preset
from feelgood.engine.compiling import in_own_precision
from feelgood.engine.simulation import stack_settings
from feelgood.engine.tally import Tally
from feelgood.numerics import chain_programs, generator, lanes
from feelgood.numerics.chain_programs import Threads
from feelgood.numerics.keys import AnyKey, LaneKeys, fold_in
from feelgood.targets import energy

LAMBDAS = [0.01, 0.1, 0.5, 1.0]
STEPS = 25
ON_CPU = jax.default_backend() == "cpu"
#: The two ways; on a CPU programs are interpreted.
TOGETHER, APART = "together", "interpreted" if ON_CPU else "apart"
#: What a program for Triton is called in the text of compiled code.
CALLED = "__gpu$xla.gpu.triton"
#: Testbed, agent and settings whose draws are compared.
CHECKED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("linear-20", "fglmcts", {}),
    ("linear-20", "fglmcts", {"b": 0.5, "lam_schedule": "sqrt"}),
    ("linear-20", "sfglmcts", {"b": 0.5}),
    ("linear-40", "fglmcts", {}),
    ("linear-20", "fgmalats", {"warmup_steps": 0}),
)
#: Ways to spread a program over threads, the most promising first. A turn has up to 512 rounds.
SPREADS = [
    Threads(),
    Threads(together=1),
    Threads(tile=32, warps=1, together=4),
    Threads(tile=32, warps=1),
    Threads(together=4, at_once=2),
    Threads(kept=0),
    Threads(together=1, kept=0),
    Threads(tile=128, warps=4, together=1, kept=0),
]
#: Asks XLA to launch kernels, and loops of them, as graphs.
GRAPHS = "--xla_gpu_enable_command_buffer=FUSION,CUSTOM_CALL,WHILE --xla_gpu_graph_min_graph_size=1"
#: Asks it for none.
NO_GRAPHS = "--xla_gpu_enable_command_buffer="


class NotFusedError(RuntimeError):
    """Steps that were to be one program are not."""


def refuse(sentence: str) -> None:
    """In the place of the notice that chains are stepped together after all."""
    raise NotFusedError(sentence)


def require_fused(steps: Any, texts: list[str]) -> int:
    """How often the program is called in the compiled code; an error where it is not."""
    count = sum(text.count(f'custom_call_target="{CALLED}"') for text in texts)
    if steps == "apart" and not count:
        raise NotFusedError(f"{CALLED} is not in the text of the compiled code")
    return count


@contextlib.contextmanager
def carried_out(steps: Any) -> Iterator[None]:
    """Runs carry out their steps so, as on an accelerator."""

    def layout_of(chains: int, settings: int) -> Layout:
        return Layout(chains=chains, settings=settings, reads_all=True, unroll=5, steps=steps)

    with (
        mock.patch.object(compiling, "_programs", type(compiling._programs)()),
        mock.patch.object(plan, "layout_of", layout_of),
        mock.patch.object(device, "on_accelerator", lambda: True),
        mock.patch.object(device, "memory_limit", lambda: None),
    ):
        yield


@contextlib.contextmanager
def spread_over(threads: Threads) -> Iterator[None]:
    """Programs are spread over threads like this."""
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

    def program(self, draws: int) -> jax.stages.Wrapped:
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
        args = (drawing.policy, drawing.keys, state)
        program = drawing.program(1).lower(*args).compile()
        require_fused(steps, [program.as_text() or ""])
        found.append(np.asarray(program(*args)))
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
    program = drawing.program(draws).lower(*args).compile()
    compile_s = time.perf_counter() - began
    calls = require_fused(steps, [program.as_text() or ""])
    best = float("inf")
    for _ in range(4):
        began = time.perf_counter()
        jax.block_until_ready(program(*args))
        best = min(best, time.perf_counter() - began)
    return {
        "µs_per_step": round(1e6 * best / (draws * STEPS), 2),
        "compile_s": round(compile_s, 2),
        "programs_in_compiled_code": calls,
    }


@contextlib.contextmanager
def bookkeeping() -> Iterator[list[float]]:
    """The seconds that runs spend on sums of what was played, call by call."""
    spent: list[float] = []

    def timing(function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            began = time.perf_counter()
            out = function(*args)
            spent.append(time.perf_counter() - began)
            return out

        return timed

    with (
        mock.patch.object(group, "_regret", timing(group._regret)),
        mock.patch.object(Tally, "add", timing(Tally.add)),
    ):
        yield spent


def swept(
    steps: Any,
    agent: str,
    seeds: int,
    rounds: int,
    testbed: str = "linear-20",
    inner_steps: int = STEPS,
) -> Any:
    """The whole sweep: seconds, and the regret of every λ and seed."""
    values: dict[str, Any] = {"lam": LAMBDAS, "steps": inner_steps} if "fg" in agent else {}
    with carried_out(steps), bookkeeping() as spent:
        result = run(
            testbed, [agent], rounds=rounds, seeds=seeds, preset="paper", settings={agent: values}
        )
        calls = require_fused(steps, [one.as_text() for one in compiling._programs.values()])
    return {
        "agent": agent,
        "testbed": testbed,
        "steps": steps,
        "programs_in_compiled_code": calls,
        "chains": sum(len(one.seeds) for one in result),
        "compile_s": round(result[0].compile_s, 2),
        "run_s": round(result[0].run_s, 2),
        "bookkeeping_s": round(sum(spent), 2),
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
    """What was found, part by part; it is written after every part."""

    #: Whether the script ends where steps that were to be one program are not.
    ends = True

    def __init__(self, out: Path, budget: float, limit: float) -> None:
        self.began, self.budget, self.failed = time.perf_counter(), budget, False
        self.places = [out]
        if "OUT" in os.environ:
            self.places.append(Path(os.environ["OUT"]) / out.name)
        facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
        self.found: dict[str, Any] = {"facts": facts | {"python": platform.python_version()}}
        self.doing = ""
        timer = threading.Timer(limit, self._stop, [limit])
        timer.daemon = True
        timer.start()

    @property
    def passed(self) -> float:
        return time.perf_counter() - self.began

    def _stop(self, limit: float) -> None:
        """End the process in the middle of a part."""
        self.found[self.doing] = f"not finished after {limit:.0f} s"
        print(f"{self.doing}: {self.found[self.doing]}", flush=True)
        self._write()
        os._exit(1)

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a part of the work, if there is time for it, and keep what came out."""
        if self.passed > self.budget:
            return self._keep(name, f"not begun: {self.passed:.0f} s had passed")
        self.doing = name
        try:
            out = work()
        except NotFusedError as error:
            self.failed = True
            self._keep(name, {"error": f"NOT FUSED: {error}"})
            if self.ends:
                sys.exit(f"NOT FUSED, in {name}: {error}")
            return None
        except Exception:
            self.failed = True
            print(f"{name} FAILED\n{traceback.format_exc()}", flush=True)
            return self._keep(name, {"error": traceback.format_exc()})
        self._keep(name, out)
        return out

    def _keep(self, name: str, out: Any) -> None:
        shown = {k: v for k, v in out.items() if k != "regrets"} if isinstance(out, dict) else out
        self.found[name] = shown
        print(f"[{self.passed:6.1f} s] {name}: {json.dumps(shown, ensure_ascii=False)}", flush=True)
        self._write()

    def _write(self) -> None:
        """One JSON text, without the single regrets."""
        found = self.found | {"seconds": round(self.passed, 1)}
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        for place in self.places:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")


def with_graphs(options: argparse.Namespace, graphs: str = GRAPHS) -> Any:
    """The sweep as programs in a process whose XLA launches such graphs."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {graphs}"
    command = [sys.executable, __file__, "--only-sweep", "--seeds", str(options.seeds)]
    command += ["--rounds", str(options.rounds)]
    done = subprocess.run(
        command,
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-6000:])
    return json.loads(done.stdout.splitlines()[-1])


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=40, help="draws that are timed at once")
    parser.add_argument("--budget", type=float, default=150.0, help="seconds to begin a part in")
    parser.add_argument("--limit", type=float, default=225.0, help="seconds until it ends anyway")
    parser.add_argument("--shares", action="store_true", help="where the time of the sweep goes")
    parser.add_argument("--spreads", action="store_true", help="ways to spread over threads")
    parser.add_argument("--only-sweep", action="store_true", help="one sweep as programs, as JSON")
    parser.add_argument("--out", type=Path, default=Path("bench/results/gpu-sweep.json"))
    return parser.parse_args()


def compare(options: argparse.Namespace) -> bool:
    """All parts, the most telling first; whether all that were begun went well."""
    seeds, rounds, half = options.seeds, options.rounds, options.rounds // 2
    report = Report(options.out, options.budget, options.limit)

    def check(k: int) -> None:
        bed, agent, settings = CHECKED[k]
        few = min(seeds, 25), min(half, 1500)
        report.part(f"check {k}", functools.partial(checked, bed, agent, settings, *few))

    report.part("draws apart", lambda: timed(APART, seeds, half, options.draws))
    report.part("draws together", lambda: timed(TOGETHER, seeds, half, options.draws))
    check(0)
    fused = report.part("sweep apart", lambda: swept(APART, "fglmcts", seeds, rounds))
    plain = report.part("sweep together", lambda: swept(TOGETHER, "fglmcts", seeds, rounds))
    if fused and plain:
        report.part("apart - together", lambda: paired(fused, plain))
    for k in range(1, len(CHECKED)):
        check(k)
    time_threads(report, seeds, half, options.draws)
    report.part("sweep apart, graphs", lambda: with_graphs(options))
    report.part("sweep 40", lambda: swept(APART, "fglmcts", seeds, rounds, "linear-40"))
    time_rounds(report, seeds, rounds, options.draws)
    return not report.failed


def time_rounds(report: Report, seeds: int, rounds: int, draws: int) -> None:
    """Draws with few and with all rounds behind them."""
    for name, count in (("few", max(8, rounds // 100)), ("all", rounds)):
        work = functools.partial(timed, APART, seeds, count, draws)
        report.part(f"draws apart, {name} rounds", work)


def named(threads: Threads) -> str:
    """The ways in which a spread differs from the default."""
    values = threads._asdict()
    usual = Threads._field_defaults
    return ", ".join(f"{name} {x}" for name, x in values.items() if x != usual[name]) or "default"


def time_threads(report: Report, seeds: int, rounds: int, draws: int) -> dict[Threads, float]:
    """Draws of programs that are spread over threads in several ways: µs per step of each."""
    found = {}
    for threads in SPREADS:
        with spread_over(threads):
            work = functools.partial(timed, APART, seeds, rounds, draws)
            out = report.part(f"draws apart, {named(threads)}", work)
        if out and "µs_per_step" in out:
            found[threads] = out["µs_per_step"]
    return found


def spreads(options: argparse.Namespace) -> bool:
    """Times all spreads, runs the sweep with the three quickest, and the rest with the default."""
    seeds, rounds, draws = options.seeds, options.rounds, options.draws
    report = Report(
        options.out.with_stem(f"{options.out.stem}-spreads"), options.budget, options.limit
    )
    report.ends = False
    found = time_threads(report, seeds, rounds // 2, draws)
    bed, agent, settings = CHECKED[0]
    few = min(seeds, 25), min(rounds // 2, 1500)
    for threads in sorted(found, key=lambda threads: found[threads])[:3]:
        with spread_over(threads):
            work = functools.partial(swept, APART, "fglmcts", seeds, rounds)
            report.part(f"sweep apart, {named(threads)}", work)
            check = functools.partial(checked, bed, agent, settings, *few)
            report.part(f"check, {named(threads)}", check)
    one = functools.partial(swept, APART, "fglmcts", seeds, rounds, inner_steps=1)
    report.part("sweep apart, 1 step", one)
    time_rounds(report, seeds, rounds, draws)
    report.part("sweep apart, no graphs", lambda: with_graphs(options, NO_GRAPHS))
    return not report.failed


def share_out(options: argparse.Namespace) -> bool:
    """Where the time of the sweep goes; whether all parts that were begun went well."""
    seeds, rounds = options.seeds, options.rounds
    out = options.out.with_stem(f"{options.out.stem}-shares")
    report = Report(out, options.budget, options.limit)
    report.ends = False

    def sweep(name: str, rounds: int, inner_steps: int = STEPS) -> Any:
        def work() -> Any:
            found = swept(APART, "fglmcts", seeds, rounds, inner_steps=inner_steps)
            return found | {"µs_per_round": round(1e6 * found["run_s"] / rounds, 1)}

        return report.part(name, work)

    report.part("draws apart", lambda: timed(APART, seeds, rounds // 2, options.draws))
    sweep("sweep apart", rounds)
    sweep("sweep apart, 1 step", rounds, 1)
    time_rounds(report, seeds, rounds, options.draws)
    sweep("sweep apart, a fifth of the rounds", rounds // 5)
    time_threads(report, seeds, rounds // 2, options.draws)
    report.part("sweep apart, graphs", lambda: with_graphs(options))
    sweep("sweep apart, 1 step, a fifth of the rounds", rounds // 5, 1)
    return not report.failed


def main() -> int:
    """Compare, time and run."""
    options = parse()
    with mock.patch.object(energy, "print_notice_once", refuse):
        if options.only_sweep:
            print(json.dumps(swept(APART, "fglmcts", options.seeds, options.rounds)))
            return 0
        work = share_out if options.shares else spreads if options.spreads else compare
        return 0 if work(options) else 1


if __name__ == "__main__":
    sys.exit(main())
