"""Two versions of our code beside each other: run and compile seconds, and their ratios.

    python bench/before_after.py OLD/src NEW/src                  # rows of speed.py, on one core
    python bench/before_after.py OLD/src NEW/src --agents lints   # some of them
    python bench/before_after.py OLD/src NEW/src --accelerator    # the device that JAX finds
    python bench/before_after.py OLD/src NEW/src --large          # many arms and networks, one core

Every run is a process of its own, without JAX's cache on disk. The two versions take turns, so that
a disturbed minute meets both, and the shortest time of each counts. Only `feelgood.run` is called,
which old and new versions have.
"""

import argparse
import datetime
import json
import platform
import sys
from pathlib import Path
from typing import Any

import speed

SIDES = ("before", "after")
#: Features and arms of testbeds with made-up rows; the first is that of `neural.py`.
MADE_UP = {"adult-like": (14, 2), "shuttle-like": (9, 7), "restaurant-like": (18, 130)}
TIMES = ("run_s", "compile_s")
#: As `gpu_sweep.py` and `neural.py` run them, whose modules old versions cannot import.
_NETWORK: dict[str, Any] = {"layers": "100", "activation": "leaky", "batch": 256, "updates": 100}
_NETWORK |= {"likelihood": "squared", "lr": 0.005, "rho": 1.0, "beta": 775.525860541521}
_SWEEP = {"lam": [0.01, 0.1, 0.5, 1.0]}
ON_ACCELERATOR: tuple[dict[str, Any], ...] = (
    {"label": "fglmcts, 400 chains", "agent": "fglmcts", "settings": _SWEEP}
    | {"testbed": speed.TESTBED, "preset": "paper", "rounds": 10_000, "seeds": 100},
    {"label": "neural-lmcts, 100 chains", "agent": "neural-lmcts", "settings": _NETWORK}
    | {"testbed": "adult-like", "preset": None, "rounds": 300, "seeds": 100},
)
#: The paper's λ table, and the paper's networks as their data sets have them.
_TRAINED: dict[str, Any] = {"layers": "100", "batch": 256, "updates": 100, "lr": 0.01}
_BONUS: dict[str, Any] = {"lam": 1.0, "b": 1.0, "lam_schedule": "constant"}
LARGE: tuple[dict[str, Any], ...] = (
    {"label": "fglmcts on logistic-20, 4 λ", "agent": "fglmcts", "settings": _SWEEP}
    | {"testbed": "logistic-20", "preset": "paper", "rounds": 2000, "seeds": 1},
    {"label": "fglmcts on logistic-20, 4 λ, sound", "agent": "fglmcts"}
    | {"settings": _SWEEP | {"lam_schedule": "constant"}}
    | {"testbed": "logistic-20", "preset": None, "rounds": 2000, "seeds": 1},
    {"label": "neural-lmcts, like adult", "agent": "neural-lmcts", "settings": _NETWORK}
    | {"testbed": "adult-like", "preset": None, "rounds": 200, "seeds": 1},
    {"label": "neural-ts, like shuttle", "agent": "neural-ts", "settings": _TRAINED}
    | {"testbed": "shuttle-like", "preset": None, "rounds": 200, "seeds": 1},
    {"label": "fg-neural-ts, like shuttle", "agent": "fg-neural-ts"}
    | {"settings": _TRAINED | _BONUS}
    | {"testbed": "shuttle-like", "preset": None, "rounds": 200, "seeds": 1},
    {"label": "neural-eps-greedy, like restaurant", "agent": "neural-eps-greedy"}
    | {"settings": _TRAINED}
    | {"testbed": "restaurant-like", "preset": None, "rounds": 50, "seeds": 1},
)


def on_one_core(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of `speed.py` without the peer."""
    common: dict[str, Any] = {"preset": "paper", "rounds": args.rounds, "seeds": args.seeds}
    return [
        {"label": r.label, "agent": r.agent, "settings": _read(r), "testbed": r.testbed} | common
        for r in speed.choose(args.agents)
    ]


def _read(row: speed.Row) -> dict[str, Any]:
    """NAME=VALUE as numbers and texts."""
    pairs = (setting.split("=") for setting in row.settings)
    return {name: float(v) if v[0].isdigit() else v for name, v in pairs}


def run_here(case: dict[str, Any]) -> dict[str, Any]:
    """Run a case with the version that this process imports."""
    import jax

    import feelgood

    name = case["testbed"]
    testbed = _made_up(*MADE_UP[name]) if name in MADE_UP else name
    wanted = {name: case[name] for name in ("rounds", "seeds", "preset")}
    settings = {case["agent"]: case["settings"]}
    results = list(feelgood.run(testbed, case["agent"], settings=settings, **wanted))
    return {
        "run_s": results[0].run_s,  # a sweep is one program, and every result has all its time
        "compile_s": results[0].compile_s,
        "regrets": [float(regret) for result in results for regret in result.final_regret],
        "package": str(feelgood.__file__),
        "device": jax.devices()[0].device_kind,
    }


def _made_up(dim: int, arms: int) -> Any:
    """Made-up rows, as `neural.py` has them."""
    import numpy as np

    from feelgood.testbeds import Classification

    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, dim))
    label = features[:, 0] + 0.5 * rng.normal(size=20_000)
    cuts = [0.8] if arms == 2 else np.quantile(label, np.arange(1, arms) / arms)
    labels = np.searchsorted(cuts, label).astype(np.int64)
    return Classification.from_arrays(features, labels, arms=arms, preprocess="paper")


def measure(case: dict[str, Any], trees: dict[str, Path], repeats: int) -> dict[str, Any]:
    """Shortest times of both versions, which take turns."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in trees}
    for side, tree in list(trees.items()) * repeats:
        command = [sys.executable, Path(__file__).resolve(), "--case", json.dumps(case)]
        variables = {"PYTHONPATH": str(tree), "JAX_ENABLE_COMPILATION_CACHE": "false"}
        done = json.loads(speed.call(command, **variables).splitlines()[-1])
        if not Path(done["package"]).is_relative_to(tree):
            raise RuntimeError(f"{done['package']} was imported, which is not in {tree}.")
        runs[side].append(done)
    entry = {"case": case, "device": runs["after"][0]["device"]}
    for time in TIMES:
        shortest = {side: min(run[time] for run in runs[side]) for side in SIDES}
        entry[time] = shortest | {"ratio": shortest["after"] / shortest["before"]}
    entry["same_regrets"] = runs["before"][0]["regrets"] == runs["after"][0]["regrets"]
    return entry


def cells(entry: dict[str, Any]) -> str:
    """One line of the table."""
    numbers = [f"{entry[time][which]:.2f}" for time in TIMES for which in (*SIDES, "ratio")]
    same = "yes" if entry["same_regrets"] else "no"
    return f"| {' | '.join([entry['case']['label'], *numbers, same])} |"


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("before", type=Path, nargs="?", help="folder `src` of the old version")
    parser.add_argument("after", type=Path, nargs="?", help="folder `src` of the new version")
    parser.add_argument("--agents", help="some rows of speed.py only, comma-separated")
    parser.add_argument("--rounds", type=int, default=10_000, help="of the rows of speed.py")
    parser.add_argument("--seeds", type=int, default=10, help="of the rows of speed.py")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the shortest counts")
    parser.add_argument("--accelerator", action="store_true", help="large rows, on any device")
    parser.add_argument("--large", action="store_true", help="many arms and networks")
    parser.add_argument("--out", type=Path, default=speed.HERE / "results" / "before-after.json")
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    folders = (args.before, args.after)
    if not args.case and not all(f and (f / "feelgood").is_dir() for f in folders):
        parser.error("name two folders that hold the package feelgood.")
    return args


def main() -> None:
    """Measures row by row, and writes what there is after each."""
    args = parse()
    if args.case:
        print(json.dumps(run_here(args.case)))
        return
    trees = {"before": args.before.resolve(), "after": args.after.resolve()}
    core = None if args.accelerator else speed.pin()
    facts = {"cpu": speed.cpu_model(), "pinned": core is not None, "jax": speed.version("jax")}
    facts |= {"python": platform.python_version(), "repeats": args.repeats}
    facts |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    print("| agent | run before | after | ratio | compile before | after | ratio | same regrets |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    entries = []
    cases = LARGE if args.large else ON_ACCELERATOR if args.accelerator else on_one_core(args)
    for case in cases:
        entries.append(measure(case, trees, args.repeats))
        print(cells(entries[-1]), flush=True)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps({"machine": facts, "rows": entries}, indent=1) + "\n")


if __name__ == "__main__":
    main()
