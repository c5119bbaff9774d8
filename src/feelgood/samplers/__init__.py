"""MCMC kernels for the targets of `feelgood.targets.energy`. One kernel a file."""

from feelgood.samplers.blocks import Info, Kernel, Noise, Tuning, run_steps
from feelgood.samplers.hmc import HMC
from feelgood.samplers.lmc import LMC
from feelgood.samplers.mala import MALA
from feelgood.samplers.svrg import SVRGLMC
from feelgood.samplers.ulmc import ULMC

__all__ = [
    "HMC",
    "LMC",
    "MALA",
    "SVRGLMC",
    "ULMC",
    "Info",
    "Kernel",
    "Noise",
    "Tuning",
    "run_steps",
]
