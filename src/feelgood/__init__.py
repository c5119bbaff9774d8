"""Feel-Good Thompson Sampling and MCMC Thompson Sampling for contextual bandits, in JAX."""

from feelgood.checking import check_agent, check_testbed
from feelgood.compiling import compile_small_loops_whole
from feelgood.errors import FeelgoodError
from feelgood.protocols import AGENTS, TESTBEDS, Policy, Testbed
from feelgood.results import AgentResult, RunResult
from feelgood.running import run, run_each
from feelgood.saving import load
from feelgood.settings import setting
from feelgood.simulate import simulate
from feelgood.types import Spec, Status

compile_small_loops_whole()

__version__ = "0.1.0"

__all__ = [
    "AGENTS",
    "TESTBEDS",
    "AgentResult",
    "FeelgoodError",
    "Policy",
    "RunResult",
    "Spec",
    "Status",
    "Testbed",
    "check_agent",
    "check_testbed",
    "load",
    "run",
    "run_each",
    "setting",
    "simulate",
]
