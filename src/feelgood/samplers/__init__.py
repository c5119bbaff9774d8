"""MCMC kernels for the targets of `targets`: one file each, which registers itself.

Imports `core`, `numerics` and `targets`.
"""

from feelgood.core.registry import import_modules
from feelgood.samplers.blocks import KERNELS, Kernel, register_kernel

__all__ = ["KERNELS", "Kernel", "register_kernel"]

import_modules(__name__, __path__)
