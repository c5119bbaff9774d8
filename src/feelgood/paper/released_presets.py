"""The released code's settings; docs/released.md says what it does besides.

Where nothing is said here they are those of the preset `paper`. The released agents deviate by
themselves: all their switches are on by default.
"""

from typing import Any

from feelgood.agents import grammar
from feelgood.core.lookup import PRESETS
from feelgood.core.spec import Spec
from feelgood.paper.linear_settings import beta_at, linear_settings
from feelgood.paper.released_networks import released_network_settings
from feelgood.released.released_names import PREFIX

#: ρ of every agent ("std_prior"), and ε.
_RHO, _EPSILON = 0.01, 0.01
#: η and the step of the settings of logistic bandits, and of the others.
_LOGISTIC, _LINEAR = {"eta": 10.0, "step": 0.001}, {"eta": 1.0, "step": 0.1}


def _released(
    agent: str, testbed: str, spec: Spec, rounds: int, logistic: dict[str, float]
) -> dict[str, Any]:
    """Settings at "β = 10³"; those of Langevin agents on logistic bandits are given."""
    networks = released_network_settings(agent, testbed, spec, rounds)
    if networks is not None:
        return networks
    parts = grammar.parts_of(agent.removeprefix(PREFIX))
    if parts is None:
        # LinTS begins with V = (ρ/η) I.
        closed = {"alpha": 1.0, "eta": 1.0, "rho": _RHO}
        return closed | {"epsilon": _EPSILON, "decay": "sqrt"}
    damped = parts.variant == "u"
    out = linear_settings(parts, spec, rounds, lam=0.01 if damped else 0.5)
    if damped:
        out["eta"] = 0.1
    elif "logistic" in testbed and out["schedule"] == "decay":
        out |= _LOGISTIC if parts.preconditioned else logistic
    return out


@PRESETS.register("released")
def released(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """The main tables at "β = 10³": beta_inv = 0.001, and 0.01 with a preconditioner."""
    return _released(agent, testbed, spec, rounds, _LINEAR)


@PRESETS.register("released-beta1")
def released_beta1(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """The main table's column "β = 1", edited by hand: 1/β = 1 without a preconditioner."""
    out = released(agent, testbed, spec, rounds)
    parts = grammar.parts_of(agent.removeprefix(PREFIX))
    if parts is not None and not parts.preconditioned:
        out["beta"] = 1.0
    return out


@PRESETS.register("released-equal-beta")
def released_equal_beta(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """λ tables at "β = 10³" with beta_inv = 0.001 for all; on logistic ones η = 10, h = 0.001/t."""
    return _at_temperature(1e-3, agent, testbed, spec, rounds)


@PRESETS.register("released-beta1-appendix")
def released_beta1_appendix(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """λ tables at "β = 1": beta_inv = 1 for all; on logistic ones η = 10, h = 0.001/t."""
    return _at_temperature(1.0, agent, testbed, spec, rounds)


def _at_temperature(
    value: float, agent: str, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any]:
    out = _released(agent, testbed, spec, rounds, _LOGISTIC)
    parts = grammar.parts_of(agent.removeprefix(PREFIX))
    if parts is not None and parts.kernel_name != "hmc":
        out["beta"] = beta_at(value, spec, rounds)
    return out
