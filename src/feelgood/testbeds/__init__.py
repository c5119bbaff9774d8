"""Testbeds, one family per file: importing this package registers them all.

The datasets' own files, in `data`, say which bandit problems they make; `problems` registers
those. It may import `core`, `numerics` and `data`.
"""

from feelgood.core.registry import import_modules
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.linear import Linear
from feelgood.testbeds.logistic import Logistic
from feelgood.testbeds.payoffs import Payoffs
from feelgood.testbeds.wheel import Wheel

__all__ = ["Classification", "Linear", "Logistic", "Payoffs", "Wheel"]

import_modules(__name__, __path__)
