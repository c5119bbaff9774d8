"""Neural LMCTS beside the released loop, on one accelerator, in one run.

    python bench/neural.py [--rounds N] [--steps N] [--whole] [--out FILE]

The shape is the paper's adult: 14 inputs, 2 arms, one hidden layer of 100, batches of 256, 100
updates per round. Both sides do the same statistical work per inner step: a batch's squared loss,
its gradient, a step with noise.

The released package on the registry holds the linear agents only; its neural loop is that of its
repository. `released_loop` does the same work, in the same order and with the same library calls.
It builds the feature x ⊗ e_a of every row, and loads rows by a DataLoader over a list of tensors.
Then comes one autograd pass. A Langevin optimiser draws one flat noise vector and adds it to each
parameter in turn. As in the repository, one seed runs at a time. A second timing leaves the
DataLoader out: rows lie on the device already.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from feelgood.core.policy import AGENTS
from feelgood.core.testbed import Testbed
from feelgood.engine.simulation import simulate
from feelgood.testbeds import Classification

DIM, ARMS, WIDTH, BATCH, UPDATES = 14, 2, 100, 256, 100
TEMPERATURE = 1e-5 * DIM * float(np.log(10_000))
HISTORY = 2_000


# ---- the released loop ----------------------------------------------------------------------


def released_loop(steps: int, loader: bool) -> float:
    """Microseconds per inner step of the released loop, the median of five stretches."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator().manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(HISTORY, DIM, generator=generator))
    arms = torch.randint(ARMS, (HISTORY,), generator=generator)
    features = torch.zeros(HISTORY, ARMS * DIM)
    for i, arm in enumerate(arms.tolist()):
        features[i, arm * DIM : (arm + 1) * DIM] = x[i]
    rewards = torch.randint(2, (HISTORY,), generator=generator).float()
    model = nn.Sequential(
        nn.Linear(ARMS * DIM, WIDTH), nn.LeakyReLU(), nn.Linear(WIDTH, 1, bias=False)
    ).to(device)
    criterion = nn.MSELoss(reduction="sum")
    parameters = list(model.parameters())
    total = sum(p.numel() for p in parameters)
    lr, decay = 0.005 / HISTORY, 2.0
    scale = (2.0 * TEMPERATURE / lr) ** 0.5

    def endless() -> Iterator[Any]:
        rows = list(zip(features, rewards.tolist(), strict=True))
        batches = DataLoader(rows, batch_size=BATCH)
        while True:
            yield from batches

    source = endless()
    on_device = features[:BATCH].to(device), rewards[:BATCH].to(device)

    def step() -> None:
        if loader:
            contexts, paid = next(source)
            contexts = contexts.to(device)
            paid = paid.to(dtype=torch.float32, device=device)
        else:
            contexts, paid = on_device
        model.zero_grad()
        loss = criterion(model(contexts).squeeze(dim=1), paid)
        loss.backward()
        with torch.no_grad():
            noise, first = -scale * torch.randn(total, device=device), 0
            for p in parameters:
                assert p.grad is not None
                p.grad.add_(noise[first : first + p.numel()].reshape(p.shape))
                first += p.numel()
            for p in parameters:
                assert p.grad is not None
                p.add_(p.grad.add_(p, alpha=decay), alpha=-lr)

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    for _ in range(50):
        step()
    seconds = []
    for _ in range(5):
        wait()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        seconds.append((time.perf_counter() - began) / steps)
    return 1e6 * statistics.median(seconds)


# ---- ours -----------------------------------------------------------------------------------


def adult_shape() -> Testbed:
    """Made-up rows of the shape of adult: the time of a step does not depend on the numbers."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, DIM))
    labels = (features[:, 0] + 0.5 * rng.normal(size=20_000) > 0.8).astype(np.int64)
    return Classification.from_arrays(features, labels, arms=ARMS, preprocess="paper")


def ours(agent: str, settings: int, seeds: int, rounds: int) -> dict[str, float]:
    """Microseconds per inner step of all chains together, in a run of the engine."""
    values: dict[str, Any] = {"layers": str(WIDTH), "activation": "leaky", "batch": BATCH}
    values |= {"updates": UPDATES, "likelihood": "squared", "lr": 0.005, "rho": 1.0}
    values |= {"beta": 1.0 / TEMPERATURE}
    bonus = {"b": 10.0, "lam_schedule": "constant"}
    swept = [
        values | ({"lam": 0.01 * (g + 1)} | bonus if "fg" in agent else {"lr": 0.005 + 1e-4 * g})
        for g in range(settings)
    ]
    policies = [AGENTS[agent].build(v) for v in swept]
    problem = adult_shape()
    simulate(problem, policies, rounds=64, seeds=range(seeds))
    outcome = simulate(problem, policies, rounds=rounds, seeds=range(seeds))
    return {
        "chains": settings * seeds,
        "rounds": rounds,
        "run_s": outcome.run_s,
        "compile_s": outcome.compile_s,
        "step_us": 1e6 * outcome.run_s / (rounds * UPDATES),
    }


def main() -> None:
    """Measure both sides and print the ratios per chain and step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=1_000, help="rounds of our runs")
    parser.add_argument("--steps", type=int, default=300, help="steps of a stretch of the other")
    parser.add_argument("--whole", action="store_true", help="also 35 chains for 10,000 rounds")
    parser.add_argument("--out", type=Path, default=Path("bench/results/neural.json"))
    options = parser.parse_args()
    facts = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    facts |= {"python": platform.python_version()}
    try:
        import torch
    except ImportError:
        peer = {}
        print("PyTorch is not installed here: only our side is measured.")
    else:
        facts["torch"] = torch.__version__
        peer = {
            "loop": released_loop(options.steps, loader=True),
            "loop without DataLoader": released_loop(options.steps, loader=False),
        }
        for name, microseconds in peer.items():
            print(
                f"released {name}: {microseconds:,.0f} µs per step, one seed at a time", flush=True
            )
    rows = []
    cases = [("neural-lmcts", 1, 5, options.rounds), ("neural-fglmcts", 1, 5, options.rounds)]
    cases += [("neural-lmcts", 8, 5, options.rounds), ("neural-fglmcts", 8, 5, options.rounds)]
    if options.whole:
        cases.append(("neural-fglmcts", 7, 5, 10_000))
    for agent, settings, seeds, rounds in cases:
        row: dict[str, Any] = {"agent": agent, **ours(agent, settings, seeds, rounds)}
        each = row["step_us"] / row["chains"]
        row["ratios"] = {name: value / each for name, value in peer.items()}
        ratios = ", ".join(f"{r:,.0f} times the released {n}" for n, r in row["ratios"].items())
        print(
            f"{agent}, {row['chains']} chains, {rounds} rounds: {row['run_s']:.1f} s, "
            f"{row['step_us']:.1f} µs per step, {each:.2f} µs per chain and step; {ratios}",
            flush=True,
        )
        rows.append(row)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    out = {"facts": facts, "released_us": peer, "rows": rows}
    options.out.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
