"""The exact four-λ sweep of `fglmcts` on an accelerator: 100 seeds, 400 chains in one program.

Run with the package importable: `python bench/gpu_sweep.py [--seeds N] [--rounds T]`. Prints a
table and writes `bench/results/gpu-sweep.json` (or the file given with `--out`).
"""

import argparse
import json
import platform
from pathlib import Path

import jax

from feelgood.api.running import run

LAMBDAS = [0.01, 0.1, 0.5, 1.0]


def main() -> None:
    """Run the sweep and report compile and run seconds apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--agents", default="fglmcts")
    parser.add_argument("--out", type=Path, default=Path("bench/results/gpu-sweep.json"))
    options = parser.parse_args()
    rows = []
    for agent in options.agents.split(","):
        settings = {agent: {"lam": LAMBDAS}} if "fg" in agent else {}
        result = run(
            "linear-20",
            [agent],
            rounds=options.rounds,
            seeds=options.seeds,
            preset="paper",
            settings=settings,
        )
        for r in result:
            rows.append(
                {
                    "agent": agent,
                    "lam": r.settings.get("lam"),
                    "regret_mean": r.regret.mean,
                    "regret_std": r.regret.std,
                    "chains": len(result) * len(r.seeds),
                    "compile_s": round(r.compile_s, 2),
                    "run_s": round(r.run_s, 2),
                    "status": r.status,
                }
            )
            print(rows[-1], flush=True)
    facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    facts |= {"python": platform.python_version(), "rounds": str(options.rounds)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"facts": facts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
