"""Latency of one decision and one reward: live bandits beside others, on one core, in one run.

    python bench/latency.py                      # ours and a plain LinTS in NumPy
    python bench/latency.py --peer-python P      # with pymab and Vowpal Wabbit, of another Python
    python bench/latency.py --parts service,long # examples/service.py under load; a million rounds

5 arms, contexts of 20 features. Every contender is a process of its own, pinned to the same core;
they take short turns, so that a machine that is slow for a while is slow for all of them. Figures
are percentiles over all turns. What is timed is in bench/README.md.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import live_load

HERE = Path(__file__).resolve().parent
ARMS, FEATURES, WARM_UP = 5, 20, 300
#: Ours are named as `feelgood list` does; the others run in the Python of the peers or in ours.
OURS, PLAIN, PEERS = ("lints", "lints-told", "lmcts"), ("numpy-lints",), ("pymab", "vw")
#: Agents of the long part, and of how many rounds they play a share. One that keeps a history takes
#: longer with every reward, so it plays few.
LONG = {"lints": 1, "lmcts": 1, "lmcts bernoulli": 250}
#: As the plain one and pymab, this one is told the noise and the prior.
TOLD = {"noise": 1.0, "prior": 1.0}
Act = Callable[[np.ndarray], tuple[Any, int]]
Update = Callable[[Any, np.ndarray, int, float], None]


class PlainLinTS:
    """LinTS as people write it in NumPy: one Cholesky factor per arm, kept until its next reward.

    V = I + Σ x xᵀ and b = Σ r x per arm, θ ~ N(V⁻¹b, V⁻¹), fresh in every decision.
    """

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.v = np.repeat(np.eye(FEATURES)[None], ARMS, axis=0)
        self.b = np.zeros((ARMS, FEATURES))
        self.root, self.mean = self.v.copy(), self.b.copy()

    def act(self, x: np.ndarray) -> tuple[Any, int]:
        normals = self.rng.standard_normal((ARMS, FEATURES))
        theta = self.mean + np.einsum("kij,ki->kj", self.root, normals)
        return None, int(np.argmax(theta @ x))

    def update(self, own: Any, x: np.ndarray, arm: int, reward: float) -> None:
        del own
        self.v[arm] += np.outer(x, x)
        self.b[arm] += reward * x
        lower = np.linalg.cholesky(self.v[arm])
        self.root[arm] = np.linalg.inv(lower)
        self.mean[arm] = np.linalg.solve(self.v[arm], self.b[arm])


def ours(agent: str) -> tuple[Act, Update]:
    import feelgood

    name, _, told = agent.partition("-")
    bandit = feelgood.Bandit(name, ARMS, FEATURES, seed=0, settings=TOLD if told else None)

    def act(x: np.ndarray) -> tuple[Any, int]:
        decision = bandit.act(x)
        return decision.id, decision.arm

    return act, lambda own, x, arm, reward: bandit.update(own, reward)


def plain() -> tuple[Act, Update]:
    agent = PlainLinTS()
    return agent.act, agent.update


def pymab() -> tuple[Act, Update]:
    from pymab.policies.contextual_bandits import LinearThompsonSamplingPolicy

    policy = LinearThompsonSamplingPolicy(n_arms=ARMS, n_features=FEATURES)
    rng = np.random.default_rng(0)

    def act(x: np.ndarray) -> tuple[Any, int]:
        rows = np.tile(x, (ARMS, 1))
        return rows, policy.select_action(context=rows, rng=rng)

    def update(rows: Any, x: np.ndarray, arm: int, reward: float) -> None:
        del x
        policy.update(action=arm, reward=reward, context=rows)

    return act, update


def vowpal_wabbit() -> tuple[Act, Update]:
    from vowpalwabbit import Workspace

    model = Workspace(f"--cb_explore {ARMS} --epsilon 0.1 --quiet")
    rng = np.random.default_rng(0)

    def text(x: np.ndarray) -> str:
        return "| " + " ".join(f"f{i}:{v:.6g}" for i, v in enumerate(x))

    def act(x: np.ndarray) -> tuple[Any, int]:
        line = text(x)
        law = np.asarray(model.predict(line))
        arm = int(rng.choice(ARMS, p=law / law.sum()))
        return (line, law[arm]), arm

    def update(own: Any, x: np.ndarray, arm: int, reward: float) -> None:
        del x
        line, probability = own
        model.learn(f"{arm + 1}:{-reward}:{probability} {line}")

    return act, update


def contender(name: str) -> tuple[Act, Update]:
    others = {"numpy-lints": plain, "pymab": pymab, "vw": vowpal_wabbit}
    return others[name]() if name in others else ours(name)


def play(name: str) -> None:
    """Rounds as the driver asks for them, one line per turn, with microseconds as the answer."""
    act, update = contender(name)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(ARMS, FEATURES))
    for line in sys.stdin:
        acting, both = [], []
        for _ in range(int(line)):
            x = rng.normal(size=FEATURES)
            start = time.perf_counter()
            own, arm = act(x)
            acted = time.perf_counter()
            reward = float(weights[arm] @ x + rng.normal())
            before = time.perf_counter()
            update(own, x, arm, reward)
            end = time.perf_counter()
            acting.append(round(1e6 * (acted - start), 3))
            both.append(round(1e6 * (acted - start + end - before), 3))
        print(json.dumps([acting, both]), flush=True)


class Contender:
    """One of them, in a process of its own, on one core."""

    def __init__(self, name: str, python: str, core: int) -> None:
        command = [python, __file__, "--one", name]
        if sys.platform == "linux":
            command = ["taskset", "-c", str(core), *command]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | threads,
        )
        self.acting: list[float] = []
        self.both: list[float] = []
        self.turn_medians: list[float] = []
        self.turn(WARM_UP)
        self.acting, self.both, self.turn_medians = [], [], []

    def turn(self, rounds: int) -> None:
        """So many rounds more."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(rounds, file=self.process.stdin, flush=True)
        acting, both = json.loads(self.process.stdout.readline())
        self.acting += acting
        self.both += both
        self.turn_medians.append(statistics.median(both))

    def end(self) -> dict[str, float]:
        """Percentiles in microseconds."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        kinds = {"act p50": (self.acting, 50)} | {f"p{p}": (self.both, p) for p in (50, 90, 99)}
        return {key: round(float(np.percentile(v, p)), 2) for key, (v, p) in kinds.items()}


def raced(asked: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Every contender's percentiles, and how long it takes beside the first peer."""
    peers = PEERS if Path(asked.peer_python).exists() else ()
    pythons = dict.fromkeys((*OURS, *PLAIN), sys.executable) | dict.fromkeys(
        peers, asked.peer_python
    )
    playing = {name: Contender(name, python, asked.core) for name, python in pythons.items()}
    for _ in range(asked.turns):
        for one in playing.values():
            one.turn(asked.rounds)
    # Slow spells hit all in turn: the ratio of two medians of one turn hardly feels them.
    other = (peers or PLAIN)[0]
    last = playing[other].turn_medians
    ratios = {
        name: statistics.median(a / b for a, b in zip(one.turn_medians, last, strict=True))
        for name, one in playing.items()
    }
    rows = {}
    for name, one in playing.items():
        row = one.end()
        tail = round(row["p99"] / row["p50"], 2)
        rows[name] = {**row, "p99/p50": tail, f"times {other}": round(ratios[name], 3)}
    return rows


def loaded(asked: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The service under load, with both ways to write its journal, on two cores."""
    cores = sorted({asked.core, max(asked.core - 1, 0)})
    return {
        fsync: live_load.served(fsync, asked.clients, asked.seconds, cores)
        for fsync in ("always", "batched")
    }


def lasting(asked: argparse.Namespace) -> dict[str, Any]:
    """Very many rounds, each agent in a process of its own on one core."""
    out = {}
    for name, share in LONG.items():
        rounds = str(asked.long // share)
        command = [sys.executable, __file__, "--one-long", name, "--long", rounds]
        if sys.platform == "linux":
            command = ["taskset", "-c", str(asked.core), *command]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        out[name] = json.loads(done.stdout)
    return out


def print_table(corner: str, rows: dict[str, dict[str, Any]]) -> None:
    """Rows of numbers; what is no number is left out."""
    first = next(iter(rows.values()))
    columns = [key for key, value in first.items() if isinstance(value, int | float)]
    widths = [max(len(key) + 2, 10) for key in columns]
    head = "".join(f"{key:>{n}}" for key, n in zip(columns, widths, strict=True))
    print(f"{corner:<18}{head}")
    for name, row in rows.items():
        numbers = (f"{row[key]:>{n}.10g}" for key, n in zip(columns, widths, strict=True))
        print(f"{name:<18}{''.join(numbers)}")


#: The parts of a benchmark, with the corner of each table.
RUNS = {
    "microseconds": ("µs, one core", raced),
    "service": ("2 cores, fsync", loaded),
    "long": ("one core, µs", lasting),
}


def facts() -> dict[str, Any]:
    """Of the machine, and how busy it was."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--one-long", help=argparse.SUPPRESS)
    parser.add_argument("--parts", default="microseconds", help=f"some of {','.join(RUNS)}")
    parser.add_argument("--rounds", type=int, default=300, help="of a turn")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--clients", type=int, default=32, help="of the service")
    parser.add_argument("--seconds", type=float, default=10.0, help="of load")
    parser.add_argument("--long", type=int, default=1_000_000, help="rounds of the long part")
    parser.add_argument("--core", type=int, default=(os.cpu_count() or 1) - 1)
    parser.add_argument("--peer-python", default=str(HERE / ".venv" / "bin" / "python"))
    parser.add_argument("--results", type=Path, default=HERE / "results" / "latency.json")
    asked = parser.parse_args()
    if asked.one_long:
        agent, _, rewards = asked.one_long.partition(" ")
        told = live_load.long_run(agent, asked.long, ARMS, FEATURES, rewards or "squared")
        print(json.dumps(told))
    elif asked.one:
        play(asked.one)
    else:
        asked.results.parent.mkdir(exist_ok=True)
        known = json.loads(asked.results.read_text()) if asked.results.exists() else {}
        for part in asked.parts.split(","):
            corner, run = RUNS[part]
            before = facts()
            rows = run(asked)
            print_table(corner, rows)
            known[part] = {"machine": before, "rows": rows}
            asked.results.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
