"""Settings of the synthetic experiments that all presets of the paper share."""

import math
from typing import Any

from feelgood.agents import grammar
from feelgood.core.spec import Spec


def beta_at(value: float, spec: Spec, rounds: int) -> float:
    """β for "1/β = value · d · ln T"."""
    return 1.0 / (value * spec.parameters * math.log(max(rounds, 2)))


def linear_settings(parts: grammar.Parts, spec: Spec, rounds: int, lam: float) -> dict[str, Any]:
    """The synthetic experiments at "β = 10³"."""
    out: dict[str, Any] = {"eta": 1.0, "rho": 0.01, "steps": 25, "likelihood": "squared"}
    out |= {"lam": lam, "lam_schedule": "constant", "b": 1000.0, "s": 10.0, "lambda_reg": 1.0}
    out |= {
        "early": 1,
        "schedule": "decay",
        "step": 0.1,
        "warmup_steps": 20,
        "batch": 64,
        "snapshot": 10,
    }
    out["start"] = "zero" if parts.preconditioned or parts.kernel_name == "hmc" else "normal"
    # Most published preconditioned numbers go with a target ten times hotter than their twins'.
    out["beta"] = beta_at(1e-2 if parts.preconditioned else 1e-3, spec, rounds)
    if parts.kernel_name == "hmc":
        out |= {"schedule": "constant", "step": 0.1, "leapfrog": 10, "beta": 1.0}
    if parts.variant == "u":
        out |= {"schedule": "constant", "step": 0.01, "gamma": 0.1}
    return out
