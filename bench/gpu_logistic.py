"""Sweeps of a shared model with a bonus on an accelerator: 50 arms, all read in every inner step.

    python bench/gpu_logistic.py                        # on the device that JAX finds
    python bench/gpu_logistic.py --seeds 2 --settings 3 --rounds 60 --draws 1 --run 20   # anywhere

The passes over past rounds are carried out in two ways: by XLA (`evaluators.Products`), and as one
kernel (`evaluators.SeedPrograms`). The script

1. times draws with `--rounds` rounds behind them in both ways,
2. draws with both from the same states and random numbers, and compares what they draw,
3. runs some rounds from the start in both ways, and compares the regrets,
4. times one pass for several ways to spread a kernel over threads.

Prints a line per result. A part that fails says so and the others go on. All results go to the file
`gpu-logistic.json` in the folder that the variable OUT names, if it is set.
"""

import argparse
import dataclasses
import functools
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
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
from feelgood.engine import compiling, device, plan
from feelgood.engine.building import build_testbed, make_variants, with_preset
from feelgood.engine.compiling import in_own_precision
from feelgood.engine.simulation import stack_settings
from feelgood.numerics import generator, lanes
from feelgood.numerics.keys import AnyKey, LaneKeys, fold_in
from feelgood.targets.bonus import FeelGood
from feelgood.targets.evaluators import seed_programs

ON_CPU = jax.default_backend() == "cpu"
PLAIN, PROGRAMS = "together", "interpreted" if ON_CPU else "apart"
STEPS = 25
EXACT, TF32X3 = lax.DotAlgorithmPreset.F32_F32_F32, lax.DotAlgorithmPreset.TF32_TF32_F32_X3
SPREADS = [
    seed_programs.Spread(128, 4, 1),
    seed_programs.Spread(128, 4, 2),
    seed_programs.Spread(128, 4, 4),
    seed_programs.Spread(64, 4, 3),
    seed_programs.Spread(64, 2, 3),
    seed_programs.Spread(256, 4, 3),
    seed_programs.Spread(256, 8, 3),
    seed_programs.Spread(128, 4, 3, EXACT),
    seed_programs.Spread(64, 4, 1, EXACT),
]


class Drawing:
    """Chains of an agent with some rounds behind them, for several λ and seeds."""

    def __init__(self, testbed: str, agent: str, options: argparse.Namespace) -> None:
        name, bed, _ = build_testbed(testbed)
        self.spec, self.seeds, self.settings = bed.spec, options.seeds, options.settings
        self.room = max(512, 2 * options.rounds)
        lam = [float(x) for x in np.geomspace(0.001, 1.0, self.settings)]
        preset = "released" if name.startswith("released") else "paper"
        values = with_preset(preset, agent, {"lam": lam}, name, bed.spec, self.room)
        stacked, swept = stack_settings([one.policy for one in make_variants(agent, values)])
        leaves, structure = jax.tree.flatten(stacked)
        for_chains = [
            jnp.repeat(x, self.seeds, axis=0) if own else x
            for x, own in zip(leaves, swept, strict=True)
        ]
        self.policy: Policy = jax.tree.unflatten(structure, for_chains)
        keys = jax.vmap(generator.key)(jnp.arange(self.seeds))
        self.keys = LaneKeys(keys=keys, settings=self.settings)

    def state(self, steps: Any, rounds: int) -> Any:
        """After so many rounds with random contexts, arms and rewards."""
        chains = self.seeds * self.settings
        layout = Layout(chains=chains, settings=self.settings, reads_all=True, steps=steps)
        spec = dataclasses.replace(self.spec, layout=layout)
        size = spec.dim * spec.arms

        def learn(policy: Policy, keys: AnyKey) -> Any:
            state = policy.reserve(policy.init(keys, spec), self.room)

            def one(t: jax.Array, state: Any) -> Any:
                numbers = lanes.normal(fold_in(keys, t + 1), size + 1)
                context = numbers[:-1].reshape(*spec.context_shape, chains) / spec.dim**0.5
                arm = lanes.randint(fold_in(keys, t + 1), 1, spec.arms)[0]
                reward = (numbers[-1] > 0).astype(jnp.float32)
                return policy.update(state, context, arm, reward)

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
def timed(testbed: str, agent: str, options: argparse.Namespace) -> Any:
    """Microseconds per inner step in both ways, and how far apart one draw is."""
    drawing = Drawing(testbed, agent, options)
    out: dict[str, Any] = {}
    found = []
    for steps in (PLAIN, PROGRAMS):
        state = drawing.state(steps, options.rounds)
        args = (drawing.policy, drawing.keys, state)
        began = time.perf_counter()
        program = drawing.program(options.draws).lower(*args).compile()
        out[f"{steps} compile_s"] = round(time.perf_counter() - began, 2)
        calls = (program.as_text() or "").count('custom_call_target="__gpu$xla.gpu.triton"')
        jax.block_until_ready(program(*args))
        began = time.perf_counter()
        jax.block_until_ready(program(*args))
        seconds = time.perf_counter() - began
        out[f"{steps} µs per step"] = round(1e6 * seconds / (options.draws * STEPS), 1)
        out[f"{steps} kernels"] = calls
        found.append(np.asarray(drawing.program(1)(*args)))
        begun = np.asarray(state.chain.theta)
    plain, programs = found
    out["moved"] = float(np.abs(plain - begun).max())
    out["difference"] = float(np.abs(plain - programs).max())
    out["finite"] = bool(np.isfinite(programs).all())
    return out


def played(testbed: str, agent: str, options: argparse.Namespace) -> Any:
    """The same rounds from the start in both ways."""
    out: dict[str, Any] = {}
    regrets = []
    for steps in (PLAIN, PROGRAMS):

        def layout_of(chains: int, settings: int, steps: Any = steps) -> Layout:
            return Layout(chains=chains, settings=settings, reads_all=True, unroll=5, steps=steps)

        with (
            mock.patch.object(compiling, "_programs", type(compiling._programs)()),
            mock.patch.object(plan, "layout_of", layout_of),
            mock.patch.object(device, "on_accelerator", lambda: True),
        ):
            result = run(
                testbed,
                [agent],
                rounds=options.run,
                seeds=options.seeds,
                preset="released" if testbed.startswith("released") else "paper",
                settings={agent: {"lam": [0.001, 0.01, 0.1, 1.0]}},
            )
        out[f"{steps} s"] = [round(result[0].compile_s, 1), round(result[0].run_s, 1)]
        regrets.append(np.asarray([one.final_regret for one in result]))
        out[f"{steps} regrets"] = [round(float(x), 2) for x in regrets[-1].mean(axis=1)]
    gap = regrets[1] - regrets[0]
    error = gap.std(axis=1, ddof=1) / np.sqrt(gap.shape[1])
    out["difference in standard errors"] = [
        round(float(x), 2) for x in gap.mean(axis=1) / np.maximum(error, 1e-12)
    ]
    out["same chains"] = f"{int((np.abs(gap) < 1e-2).sum())} of {gap.size}"
    return out


@in_own_precision
def spread(testbed: str, how: seed_programs.Spread, options: argparse.Namespace) -> Any:
    """Microseconds of a pass alone, and the share of the device's bandwidth that it reads with."""
    bed = build_testbed(testbed)[1]
    arms, dim, seeds, rounds = bed.spec.arms, bed.spec.dim, options.seeds, options.rounds
    key = jax.random.key(0)
    contexts = jax.random.normal(key, (seeds, arms, rounds, dim))
    theta = jax.random.normal(key, (seeds, 16, dim)) / dim**0.5
    full = jnp.ones((seeds, 16))
    bonus = FeelGood(lam=full, b=4.0 * full, prior_mass=full, horizon=full, lam_schedule="constant")
    turns = 1 if ON_CPU else 50

    def passes(theta: jax.Array, contexts: jax.Array) -> Any:
        def one(_: Any, theta: jax.Array) -> jax.Array:
            _, gradient = seed_programs.tile_sums(
                bonus,
                theta,
                contexts,
                jnp.asarray(rounds, jnp.int32),
                settings=options.settings,
                with_gradient=True,
                interpreted=ON_CPU,
            )
            assert gradient is not None
            # What is behind the settings was never written.
            moved = jnp.sum(gradient, axis=1)[:, : options.settings, :dim]
            return theta.at[:, : options.settings].add(1e-6 * moved)

        return lax.fori_loop(0, turns, one, theta)

    with mock.patch.object(seed_programs, "SPREAD", how):
        program = jax.jit(passes).lower(theta, contexts).compile()
    jax.block_until_ready(program(theta, contexts))
    began = time.perf_counter()
    jax.block_until_ready(program(theta, contexts))
    seconds = (time.perf_counter() - began) / turns
    size = 4 * contexts.size
    return {"µs": round(1e6 * seconds, 1), "TB/s": round(size / seconds / 1e12, 2)}


class Report:
    """What was found, part by part; it is written after every part."""

    def __init__(self, budget: float) -> None:
        self.began, self.budget, self.failed = time.perf_counter(), budget, False
        facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
        self.found: dict[str, Any] = {"facts": facts}

    def part(self, name: str, work: Callable[[], Any]) -> None:
        """Do a part of the work, if there is time for it, and keep what came out."""
        passed = time.perf_counter() - self.began
        if passed > self.budget:
            out: Any = f"not begun: {passed:.0f} s had passed"
        else:
            try:
                out = work()
            except Exception:
                self.failed = True
                out = {"error": traceback.format_exc()[-3000:]}
        self.found[name] = out
        passed = time.perf_counter() - self.began
        print(f"[{passed:5.1f} s] {name}: {json.dumps(out, ensure_ascii=False)}", flush=True)
        if "OUT" in os.environ:
            text = json.dumps(self.found, indent=1, ensure_ascii=False) + "\n"
            (Path(os.environ["OUT"]) / "gpu-logistic.json").write_text(text, encoding="utf-8")


def main() -> int:
    """All parts, the most telling first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--settings", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--draws", type=int, default=10, help="draws that are timed at once")
    parser.add_argument("--run", type=int, default=500, help="rounds of a whole run")
    parser.add_argument("--budget", type=float, default=75.0, help="seconds to begin a part in")
    options = parser.parse_args()
    report = Report(options.budget)
    twenty, forty = "released-logistic-20", "released-logistic-40"
    report.part("draws 20", lambda: timed(twenty, "fglmcts", options))
    report.part("spread", lambda: spread(twenty, seed_programs.SPREAD, options))
    for agent in ("fglmcts", "released-fgmalats"):
        report.part(f"run {agent}", functools.partial(played, twenty, agent, options))
    for how in SPREADS:
        name = f"spread {how.tile} {how.warps} {how.stages} {how.product}"
        report.part(name, functools.partial(spread, twenty, how, options))
    report.part("draws 40", lambda: timed(forty, "sfglmcts", options))
    report.part("draws linked", lambda: timed("logistic-20", "fglmcts", options))
    for how in (seed_programs.SPREAD, SPREADS[3]):
        name = f"spread 40 {how.tile} {how.warps} {how.stages}"
        report.part(name, functools.partial(spread, forty, how, options))
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
