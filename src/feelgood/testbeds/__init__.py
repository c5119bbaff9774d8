"""Testbeds: importing this package registers them all."""

from feelgood.core.registry import import_modules
from feelgood.testbeds.classification import Classification
from feelgood.testbeds.linear import Linear
from feelgood.testbeds.logistic import Logistic
from feelgood.testbeds.rows import Payoffs
from feelgood.testbeds.wheel import Wheel

__all__ = ["Classification", "Linear", "Logistic", "Payoffs", "Wheel"]

import_modules(__name__, __path__)
