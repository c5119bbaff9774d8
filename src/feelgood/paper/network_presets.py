"""The paper's settings of the agents with a network, for every dataset.

Where the table of the reading gives no batch, one of 256 stands for the whole history. Its
gradient is that of the whole history on average, at a cost that does not grow.
"""

import dataclasses
import math
from typing import Any

from feelgood.agents import grammar, neural_mcmc
from feelgood.core.spec import Spec

_BATCH, _UPDATES = 256, 100


@dataclasses.dataclass(frozen=True)
class NetworkPreset:
    """One dataset: the Langevin agents', then what the others have of their own."""

    layers: str
    likelihood: str
    lr: float
    #: 1/β = temperature · d · ln T, without a bonus.
    temperature: float
    lam: float
    b: float
    #: lr, reg and ν of NeuralTS and of NeuralUCB; lr and ε of ε-greedy.
    ts: tuple[float, float, float]
    ucb: tuple[float, float, float]
    greedy: tuple[float, float]
    activation: str = "leaky"
    #: The temperature with a bonus, where it is another.
    bonus_temperature: float | None = None
    #: The loss of NeuralUCB. The other networks that descend have the squared one.
    ucb_likelihood: str = "squared"
    batch: int = _BATCH
    updates: int = _UPDATES
    update_every: int = 1
    greedy_layers: str = "100"
    ucb_batch: int = _BATCH
    #: λ and b of FG-NeuralTS.
    ts_bonus: tuple[float, float] = (1.0, 1.0)


#: One line per dataset, as in the reading of the paper.
NETWORK_PRESETS = {
    "adult": NetworkPreset(
        *("100", "squared", 0.005, 1e-5, 0.1, 10.0),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 0.001, 0.1),
        greedy=(0.01, 0.01),
        update_every=2,
    ),
    "covertype": NetworkPreset(
        *("100", "bernoulli", 0.01, 1e-6, 0.05, 10.0),
        ts=(0.01, 0.001, 0.01),
        ucb=(0.01, 0.001, 0.001),
        greedy=(0.1, 0.4),
        bonus_temperature=1e-5,
        ucb_likelihood="bernoulli",
    ),
    "magic": NetworkPreset(
        *("20-20-20", "bernoulli", 0.005, 1e-3, 0.05, 10.0),
        ts=(0.01, 1e-5, 1e-5),
        ucb=(0.01, 0.001, 1e-5),
        greedy=(0.1, 0.1),
        activation="relu",
    ),
    "mushroom": NetworkPreset(
        *("100", "squared", 0.01, 1e-5, 0.05, 10.0),
        ts=(0.01, 1e-5, 1e-5),
        ucb=(0.01, 1e-5, 1e-5),
        greedy=(0.01, 0.1),
        update_every=2,
    ),
    "shuttle": NetworkPreset(
        *("50-50-50", "squared", 0.01, 1e-4, 0.05, 10.0),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 1e-4, 1e-5),
        greedy=(0.1, 0.01),
        updates=70,
        greedy_layers="50-50-50",
    ),
    "mnist": NetworkPreset(
        *("100-50", "squared", 0.01, 1e-5, 0.05, 10.0),
        ts=(0.01, 1e-5, 1e-5),
        ucb=(0.01, 1e-5, 1e-5),
        greedy=(0.01, 0.01),
        batch=500,
        ucb_batch=512,
        ts_bonus=(0.05, 10.0),
    ),
    "financial": NetworkPreset(
        *("100-50-25", "squared", 0.01, 1e-3, 0.1, 1.0),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 1e-4, 1e-5),
        greedy=(0.01, 0.1),
        ts_bonus=(0.01, 1.0),
    ),
    "jester": NetworkPreset(
        *("100-50-25", "squared", 0.01, 1e-3, 0.1, 1.0),
        ts=(0.01, 0.01, 1e-6),
        ucb=(0.01, 1e-4, 1e-5),
        greedy=(0.01, 0.1),
    ),
    "restaurant": NetworkPreset(
        *("100", "squared", 0.01, 1e-4, 0.01, 1.0),
        ts=(0.01, 0.01, 1e-5),
        ucb=(0.01, 0.01, 1e-5),
        greedy=(0.01, 0.01),
        ts_bonus=(0.01, 1.0),
    ),
    "cifar10": NetworkPreset(
        *("100-50", "squared", 0.01, 1e-6, 0.01, 1.0),
        ts=(0.01, 0.01, 1e-5),
        ucb=(0.01, 0.01, 1e-5),
        greedy=(0.01, 0.01),
        ts_bonus=(0.01, 1.0),
    ),
}
#: Testbeds that the paper does not have take the settings of the nearest that it has.
_NEAREST = {"digits": "mnist", "mushroom-risky": "mushroom"}
_OTHERS = "adult"
_NEURAL_TS = ("neural-ts", "fg-neural-ts", "sfg-neural-ts")


def network_preset(testbed: str) -> NetworkPreset:
    """The line for this testbed."""
    return NETWORK_PRESETS.get(_NEAREST.get(testbed, testbed), NETWORK_PRESETS[_OTHERS])


def network_settings(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any] | None:
    """The settings of an agent with a network; None for an agent without."""
    line = network_preset(testbed)
    parts = neural_mcmc.network_parts_of(agent)
    if parts is not None:
        return _sampled(parts, line, spec, rounds)
    if agent == "neural-eps-greedy":
        lr, epsilon = line.greedy
        own = {"lr": lr, "epsilon": epsilon, "decay": "sqrt", "reg": 0.0}
        return _trained(line) | own | {"layers": line.greedy_layers}
    if agent == "neural-ucb":
        lr, reg, nu = line.ucb
        own = {"lr": lr, "reg": reg, "nu": nu, "batch": line.ucb_batch}
        return _trained(line) | own | {"likelihood": line.ucb_likelihood, "design": "last-layer"}
    if agent in (*_NEURAL_TS, "neural-linear"):
        lr, reg, nu = line.ts
        lam, b = line.ts_bonus
        out = _trained(line) | {"lr": lr, "reg": reg, "lam": lam, "b": b, "s": 10.0}
        out |= {"lam_schedule": "constant", "bonus_on": "mean"}
        return out | ({"rho": 1.0, "nu": 1.0} if agent == "neural-linear" else {"nu": nu})
    return None


def networks_at_beta_1(agent: str) -> dict[str, Any]:
    """What an agent with a network had out of the box before it learned its noise."""
    if neural_mcmc.network_parts_of(agent) is not None:
        return {"beta": 30.0, "eta": 1.0, "rho": 0.1}
    if agent in _NEURAL_TS:
        return {"nu": 0.1, "reg": 0.01, "design": "diagonal"}
    return {"rho": 1.0, "nu": 1.0} if agent == "neural-linear" else {}


def _sampled(parts: grammar.Parts, line: NetworkPreset, spec: Spec, rounds: int) -> dict[str, Any]:
    """MCMC agents. The paper has Langevin ones; the others keep their own steps."""
    out: dict[str, Any] = {"layers": line.layers, "activation": line.activation}
    out |= {"likelihood": line.likelihood, "eta": 1.0, "rho": 1.0, "schedule": "decay"}
    out |= {"updates": line.updates, "update_every": line.update_every}
    out |= {"lam": line.lam, "lam_schedule": "constant", "b": line.b, "s": 10.0, "bonus_on": "mean"}
    temperature, kernel = line.temperature, parts.kernel.__name__
    if parts.bonus_name and line.bonus_temperature is not None:
        temperature = line.bonus_temperature
    out["beta"] = 1.0 / (temperature * spec.dim * math.log(max(rounds, 2)))
    if kernel in ("LMC", "SVRGLMC"):
        out["lr"] = line.lr
    if kernel in ("LMC", "ULMC", "SVRGLMC"):
        out["batch"] = line.batch
    return out


def _trained(line: NetworkPreset) -> dict[str, Any]:
    """One hidden layer of 100, ReLU, a squared loss."""
    return {
        "layers": "100",
        "activation": "relu",
        "likelihood": "squared",
        "design": "diagonal",
        "batch": line.batch,
        "updates": _UPDATES,
        "update_every": 1,
    }
