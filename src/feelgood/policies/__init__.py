"""Agents: importing this package registers them all."""

from feelgood.policies import blackjax_bridge, grammar
from feelgood.policies.greedy import EpsGreedy, TabularEpsGreedy
from feelgood.policies.lints import LinTS
from feelgood.policies.linucb import LinUCB
from feelgood.policies.thompson import Thompson
from feelgood.policies.uniform import Uniform
from feelgood.registry import import_modules

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
