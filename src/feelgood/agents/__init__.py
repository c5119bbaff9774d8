"""Agents, one file each: importing this package registers them all.

Imports `samplers`, `targets`, `numerics` and `core`, and never asks for the device.
"""

from feelgood.agents import blackjax_bridge, grammar
from feelgood.agents.epsgreedy import EpsGreedy, TabularEpsGreedy
from feelgood.agents.lints import LinTS
from feelgood.agents.linucb import LinUCB
from feelgood.agents.thompson import Thompson
from feelgood.agents.uniform import Uniform
from feelgood.core.registry import import_modules

__all__ = [
    "EpsGreedy",
    "LinTS",
    "LinUCB",
    "TabularEpsGreedy",
    "Thompson",
    "Uniform",
    "blackjax_bridge",
    "grammar",
]

import_modules(__name__, __path__)
