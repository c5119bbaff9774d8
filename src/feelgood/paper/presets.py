"""The paper's settings, for every agent and testbed.

The paper leaves much unsaid; docs/reproducing.md gives the reading that is used here. A preset is
a function of (agent, testbed, dimension, rounds); settings that the user gives win over it.
"""

from typing import Any

from feelgood.agents import grammar
from feelgood.core.lookup import PRESETS
from feelgood.core.policy import AGENTS
from feelgood.core.spec import Spec
from feelgood.paper.linear_settings import beta_at, linear_settings
from feelgood.paper.network_presets import network_settings, networks_at_beta_1


@PRESETS.register("paper")
def paper(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """The main tables at "β = 10³", that is 1/β = 10⁻³ d ln T."""
    networks = network_settings(agent, testbed, spec, rounds)
    if networks is not None:
        return networks
    logistic, wheel = testbed.startswith("logistic"), testbed.startswith("wheel")
    parts = grammar.parts_of(agent)
    if parts is None:
        return {"alpha": 0.1, "rho": 0.01, "eta": 1.0, "epsilon": 0.01, "decay": "none"}
    damping = parts.variant == "u" or wheel
    out = linear_settings(parts, spec, rounds, lam=0.01 if damping else 0.5)
    if logistic and parts.bonus_name:
        # The text has this η; the step is the one that goes with it in the released settings.
        out["eta"] = 10.0
        if out["schedule"] == "decay":
            out["step"] = 0.001
    return out


@PRESETS.register("paper-beta1")
def paper_beta1(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """The main table's column "β = 1": 1/β = 1; preconditioned and HMC agents are unchanged."""
    out = paper(agent, testbed, spec, rounds)
    parts = grammar.parts_of(agent)
    if parts is not None and not parts.preconditioned:
        out["beta"] = 1.0
    return out


@PRESETS.register("paper-beta1-appendix")
def paper_beta1_appendix(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """The appendix' λ tables at "β = 1", where 1/β = d ln T, preconditioned or not."""
    return _at_temperature(1.0, agent, testbed, spec, rounds)


@PRESETS.register("paper-equal-beta")
def paper_equal_beta(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """Tables at "β = 10³" with 1/β = 10⁻³ d ln T for preconditioned agents too.

    The appendix' λ table for linear-40 was run so, unlike the main table; it is also what an
    ablation of the preconditioner needs.
    """
    return _at_temperature(1e-3, agent, testbed, spec, rounds)


def _at_temperature(
    value: float, agent: str, testbed: str, spec: Spec, rounds: int
) -> dict[str, Any]:
    """The preset `paper` with 1/β = value · d · ln T for every LMC and MALA agent."""
    out = paper(agent, testbed, spec, rounds)
    parts = grammar.parts_of(agent)
    if parts is not None and parts.kernel_name != "hmc":
        out["beta"] = beta_at(value, spec, rounds)
    return out


#: Steps that suited the agents at β = 1 on linear bandits.
_STEPS_AT_BETA_1 = {"svrglmc": 0.3, "ulmc": 0.3, "lmc": 0.5, "mala": 0.4, "hmc": 0.8}


@PRESETS.register("constant-bonus")
def constant_bonus(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """The bonus as it was out of the box before its weight fell: λ = 0.1 in every round."""
    rule = AGENTS[agent].settings.get("lam")
    if rule is None or rule.default == 0.0:
        return {}
    return {"lam": 0.1, "lam_schedule": "constant"}


@PRESETS.register("beta-1")
def beta_1(agent: str, testbed: str, spec: Spec, rounds: int) -> dict[str, Any]:
    """β = η = 1 and ρ = 0.01, with steps that follow the curvature: the same for linear agents.

    Most studies of single questions were run so. The noise of a testbed does not enter, and the
    bonus is on the score. Agents with a network have what they had by default in those studies.
    """
    parts, out = grammar.parts_of(agent), constant_bonus(agent, testbed, spec, rounds)
    if parts is None:
        return out | ({"eta": 1.0, "rho": 0.01} if agent == "lints" else networks_at_beta_1(agent))
    out |= {"beta": 1.0, "eta": 1.0, "rho": 0.01, "lambda_reg": 1.0, "early": 1}
    out["bonus_on"] = "score" if spec.rewards == "bernoulli" else "mean"
    # A jump beside the steps leaves them as they are; a kernel of one's own keeps its own.
    for name in (parts.kernel_name, parts.variant + parts.kernel_name):
        if name in _STEPS_AT_BETA_1:
            out["step"] = _STEPS_AT_BETA_1[name]
    return out
