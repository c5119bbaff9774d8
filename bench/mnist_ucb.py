"""Why is the published NeuralUCB on MNIST so much worse than ours? Three ways to train it.

    python bench/mnist_ucb.py [--batches order|first|random] [--seed S] [--rounds T]

The network, its settings and the data are those of the paper's preset; written in NumPy and
independent of the package. The released script makes at most 50 updates per round. Up to 512
observations it trains with all of them, until a loss of 0.001. Later it takes mini-batches of 512
in the order of the history (`order`). `first` always takes the first 512 rounds, `random` draws
uniformly. Prints the regret and the share of wrong arms along the run. About 10 minutes for 3,000
rounds on one core; set FEELGOOD_DATA to the folder of the data sets.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

ARMS, DIM, WIDTH = 10, 784, 100
RATE, REG, NU = 0.01, 1e-5, 1e-5
BATCH, UPDATES, ENOUGH = 512, 50, 1e-3
ROWS, REPORT = 50_000, 250


class Group(NamedTuple):
    """Rounds of a batch in which one arm was played."""

    arm: int
    contexts: np.ndarray
    rewards: np.ndarray


class Network:
    """One hidden layer of rectified units; a block of first weights per arm, no output bias."""

    def __init__(self, rng: np.random.Generator) -> None:
        bound, last = 1 / np.sqrt(ARMS * DIM), 1 / np.sqrt(WIDTH)
        self.first = rng.uniform(-bound, bound, (ARMS, DIM, WIDTH)).astype(np.float32)
        self.bias = rng.uniform(-bound, bound, WIDTH).astype(np.float32)
        self.output = rng.uniform(-last, last, WIDTH).astype(np.float32)

    def hidden(self, context: np.ndarray) -> np.ndarray:
        """The hidden layer of every arm."""
        return np.maximum(np.matmul(context, self.first) + self.bias, 0)

    def update(self, groups: list[Group], decay: float) -> float:
        """One step of gradient descent on the mean loss of a batch; the loss before it."""
        count = sum(len(group.rewards) for group in groups)
        loss, bias, output = 0.0, np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        blocks = []
        for arm, contexts, rewards in groups:
            hidden = np.maximum(contexts @ self.first[arm] + self.bias, 0)
            error = hidden @ self.output - rewards
            loss += float(np.sum(error**2)) / count
            slope = 2 * error / count
            output += hidden.T @ slope
            delta = slope[:, None] * self.output * (hidden > 0)
            bias += delta.sum(axis=0)
            blocks.append((arm, contexts.T @ delta))
        keep = 1 - RATE * decay
        self.first *= np.float32(keep)
        for arm, block in blocks:
            self.first[arm] -= RATE * block
        self.bias = keep * self.bias - RATE * bias
        self.output = keep * self.output - RATE * output
        return loss


class Design:
    """The diagonal of U = reg I + Σ g gᵀ, and the widths √(reg ν gᵀU⁻¹g) of all arms."""

    def __init__(self) -> None:
        self.first = np.full((ARMS, DIM, WIDTH), REG, np.float32)
        self.bias, self.output = np.full(WIDTH, REG, np.float32), np.full(WIDTH, REG, np.float32)

    def widths(self, context: np.ndarray, hidden: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """The widths of all arms in a context; `delta` is ∂f/∂z of the hidden layer."""
        square = np.stack([(context**2) @ (1 / block) for block in self.first])
        total = np.sum(square * delta**2, axis=1)
        total += delta**2 @ (1 / self.bias) + hidden**2 @ (1 / self.output)
        return np.sqrt(REG * NU * total)

    def add(self, context: np.ndarray, hidden: np.ndarray, delta: np.ndarray, arm: int) -> None:
        """Add the gradient of the played arm."""
        self.first[arm] += np.outer(context**2, delta[arm] ** 2)
        self.bias += delta[arm] ** 2
        self.output += hidden[arm] ** 2


def grouped(
    chosen: np.ndarray, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray
) -> list[Group]:
    """These rounds by the arm that was played."""
    parts = ((arm, chosen[arms[chosen] == arm]) for arm in range(ARMS))
    return [Group(arm, contexts[part], rewards[part]) for arm, part in parts if len(part)]


def batches(way: str, count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The rounds of one mini-batch after the other, with `count` rounds played."""
    while True:
        if way == "first":
            yield np.arange(BATCH)
        elif way == "random":
            yield rng.integers(0, count, BATCH)
        else:
            for start in range(0, count, BATCH):
                yield np.arange(start, min(start + BATCH, count))


def play(way: str, seed: int, rounds: int) -> None:
    """One run, reported along the way."""
    rng = np.random.default_rng(seed)
    file = Path(os.environ.get("FEELGOOD_DATA", ".")) / "mnist_784.npz"
    if not file.exists():
        sys.exit(f"there is no {file}: set FEELGOOD_DATA to the folder of the data sets.")
    with np.load(file) as data:
        order = rng.permutation(ROWS)[:rounds]
        contexts = data["X"][:ROWS].reshape(ROWS, DIM)[order].astype(np.float32)
        labels = data["y"][:ROWS][order]
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    network, design = Network(rng), Design()
    arms, rewards = np.zeros(rounds, int), np.zeros(rounds, np.float32)
    kept: dict[int, list[Group]] = {}  # whole batches in order do not change
    for t, context in enumerate(contexts):
        hidden = network.hidden(context)
        delta = (hidden > 0) * network.output
        widths = design.widths(context, hidden, delta)
        arms[t] = int(np.argmax(hidden @ network.output + widths))
        rewards[t] = float(arms[t] == labels[t])
        design.add(context, hidden, delta, arms[t])
        count = t + 1
        if count <= BATCH:
            groups = grouped(np.arange(count), contexts, arms, rewards)
            for _ in range(UPDATES):
                if network.update(groups, REG / count) < ENOUGH:
                    break
        else:
            for _, chosen in zip(range(UPDATES), batches(way, count, rng), strict=False):
                start = int(chosen[0])
                whole = way != "random" and len(chosen) == BATCH
                if not whole or start not in kept:
                    groups = grouped(chosen, contexts, arms, rewards)
                    if whole:
                        kept[start] = groups
                network.update(kept[start] if whole else groups, REG / count)
        if count % REPORT == 0:
            wrong = 1 - rewards[count - REPORT : count].mean()
            print(f"{count:6d} regret {count - rewards.sum():6.0f}, wrong {wrong:.0%}", flush=True)


def main() -> None:
    """Read the arguments and play."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", choices=("order", "first", "random"), default="order")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3000)
    options = parser.parse_args()
    play(options.batches, options.seed, options.rounds)


if __name__ == "__main__":
    main()
