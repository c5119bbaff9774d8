"""The released settings of the agents with a network: Neural/configs/uci and Neural/configs/image.

Where a file names no batch, every step reads the whole history (batch 0).
"""

import dataclasses
import math
from typing import Any

from feelgood.core.spec import Spec
from feelgood.released.released_names import PREFIX


@dataclasses.dataclass(frozen=True)
class ReleasedNetworks:
    """One data set. Of LMCTS: layers, activation, loss, lr, beta_inv and what it has besides."""

    langevin: tuple[str, str, str, float, float]
    #: lr, reg and ν of NeuralTS and of NeuralUCB; lr and ε of ε-greedy.
    ts: tuple[float, float, float]
    ucb: tuple[float, float, float]
    greedy: tuple[float, float]
    #: λ and b of FG-NeuralTS and of SFG-NeuralTS.
    hard: tuple[float, float] = (1.0, 1.0)
    smooth: tuple[float, float] = (1.0, 1.0)
    batch: int = 0
    updates: int = 100
    update_every: int = 1
    decay_step: int = 20
    ucb_batch: int = 0
    greedy_layers: str = "100"
    greedy_every: int = 1


RELEASED_NETWORKS = {
    "adult": ReleasedNetworks(
        ("100", "leaky", "squared", 0.005, 1e-5),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 0.001, 0.1),
        greedy=(0.01, 0.01),
        batch=256,
        update_every=2,
        decay_step=1000,
        greedy_every=2,
    ),
    "covertype": ReleasedNetworks(
        ("100", "leaky", "bernoulli", 0.01, 1e-6),
        ts=(0.01, 0.001, 0.01),
        ucb=(0.01, 0.001, 0.001),
        greedy=(0.1, 0.4),
    ),
    "magic": ReleasedNetworks(
        ("20-20-20", "relu", "bernoulli", 0.005, 1e-3),
        ts=(0.01, 1e-5, 1e-5),
        ucb=(0.01, 0.001, 1e-5),
        greedy=(0.1, 0.05),
    ),
    "mushroom": ReleasedNetworks(
        ("100", "leaky", "squared", 0.01, 1e-6),
        ts=(0.01, 1e-5, 1e-5),
        ucb=(0.01, 1e-5, 1e-5),
        greedy=(0.01, 0.1),
        update_every=2,
    ),
    "shuttle": ReleasedNetworks(
        ("50-50-50", "leaky", "squared", 0.01, 1e-4),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 1e-4, 1e-5),
        greedy=(0.1, 0.01),
        updates=70,
        greedy_layers="50-50-50",
    ),
    # No file has ε-greedy on mnist: its numbers are the paper's.
    "mnist": ReleasedNetworks(
        ("100-50", "leaky", "squared", 0.01, 1e-5),
        ts=(0.01, 1e-5, 1e-5),
        ucb=(0.01, 1e-5, 1e-5),
        greedy=(0.01, 0.01),
        hard=(0.05, 10.0),
        batch=500,
        ucb_batch=512,
    ),
    # LMCTS, NeuralUCB and ε-greedy have scripts of their own, which fail.
    "jester": ReleasedNetworks(
        ("100-50-25", "leaky", "squared", 0.01, 1e-3),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 1e-4, 1e-5),
        greedy=(0.01, 0.1),
    ),
}


def released_network_settings(
    agent: str, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any] | None:
    """The released settings of an agent with a network; None for an agent without."""
    line = RELEASED_NETWORKS.get(testbed.removeprefix(PREFIX), RELEASED_NETWORKS["adult"])
    name = agent.removeprefix(PREFIX)
    if name == "neural-lmcts":
        layers, activation, likelihood, lr, value = line.langevin
        out: dict[str, Any] = {"layers": layers, "activation": activation, "lr": lr}
        out |= {"likelihood": likelihood, "eta": 1.0, "rho": 1.0, "schedule": "decay"}
        out |= {"batch": line.batch, "updates": line.updates, "update_every": line.update_every}
        out["beta"] = 1.0 / (value * spec.dim * math.log(max(rounds, 2)))
        return out | {"decay_step": line.decay_step}
    common: dict[str, Any] = {"layers": "100", "activation": "relu", "likelihood": "squared"}
    common |= {"updates": 100, "update_every": 1, "batch": 0, "design": "diagonal"}
    if name == "neural-eps-greedy":
        lr, epsilon = line.greedy
        own = {"lr": lr, "epsilon": epsilon, "decay": "sqrt", "reg": 0.0}
        return common | own | {"layers": line.greedy_layers, "update_every": line.greedy_every}
    if name == "neural-ucb":
        lr, reg, nu = line.ucb
        return common | {"lr": lr, "reg": reg, "nu": nu, "batch": line.ucb_batch}
    if name in ("neural-ts", "fg-neural-ts", "sfg-neural-ts"):
        lr, reg, nu = line.ts
        lam, b = line.smooth if name == "sfg-neural-ts" else line.hard
        own = {"lr": lr, "reg": reg, "nu": nu, "lam": lam, "b": b, "s": 10.0}
        return common | own | {"lam_schedule": "constant", "bonus_on": "score"}
    return None
