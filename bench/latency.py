"""Latency of one decision and one reward: live bandits beside others, on one core, in one run.

    python bench/latency.py                      # ours and a plain LinTS in NumPy
    python bench/latency.py --peer-python P      # with pymab and Vowpal Wabbit, of another Python

5 arms, contexts of 20 features. Every contender is a process of its own, pinned to the same core;
they take turns, and each figure is the median over the turns. What is timed is in bench/README.md.
"""

import argparse
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

HERE = Path(__file__).resolve().parent
ARMS, FEATURES, WARM_UP = 5, 20, 300
#: Ours are named as `feelgood list` does; the others run in the Python of the peers or in ours.
OURS, PLAIN, PEERS = ("lints", "lmcts"), ("numpy-lints",), ("pymab", "vw")
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

    bandit = feelgood.Bandit(agent, ARMS, FEATURES, seed=0)

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


def measured(name: str, rounds: int) -> dict[str, float]:
    """Percentiles in microseconds of `rounds` decisions, each rewarded at once."""
    act, update = contender(name)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(ARMS, FEATURES))
    acting, both = [], []
    for t in range(WARM_UP + rounds):
        x = rng.normal(size=FEATURES)
        start = time.perf_counter()
        own, arm = act(x)
        acted = time.perf_counter()
        reward = float(weights[arm] @ x + rng.normal())
        before = time.perf_counter()
        update(own, x, arm, reward)
        end = time.perf_counter()
        if t >= WARM_UP:
            acting.append(acted - start)
            both.append(acted - start + end - before)
    numbers = {"act p50": (acting, 50), "p50": (both, 50), "p90": (both, 90), "p99": (both, 99)}
    return {key: 1e6 * float(np.percentile(v, p)) for key, (v, p) in numbers.items()}


def in_own_process(python: str, name: str, rounds: int, core: int) -> dict[str, float] | None:
    """The same in a process of its own, on one core; None where it cannot be run."""
    command = [python, __file__, "--one", name, "--rounds", str(rounds)]
    if sys.platform == "linux":
        command = ["taskset", "-c", str(core), *command]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | threads
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--core", type=int, default=(os.cpu_count() or 1) - 1)
    parser.add_argument("--peer-python", default=str(HERE / ".venv" / "bin" / "python"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(asked.one, asked.rounds)))
        return
    peers = PEERS if Path(asked.peer_python).exists() else ()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in (*OURS, *PLAIN, *peers)}
    for _ in range(asked.turns):
        for name, runs in found.items():
            python = asked.peer_python if name in PEERS else sys.executable
            numbers = in_own_process(python, name, asked.rounds, asked.core)
            if numbers is not None:
                runs.append(numbers)
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for name, runs in found.items()
        if runs
    }
    print(f"{'µs, one core':<14}" + "".join(f"{key:>10}" for key in next(iter(medians.values()))))
    for name, row in medians.items():
        print(f"{name:<14}" + "".join(f"{value:>10.1f}" for value in row.values()))
    results = HERE / "results" / "latency.json"
    results.parent.mkdir(exist_ok=True)
    machine = {"processor": platform.processor(), "python": platform.python_version()}
    results.write_text(json.dumps({"machine": machine, "microseconds": medians}, indent=1) + "\n")


if __name__ == "__main__":
    main()
