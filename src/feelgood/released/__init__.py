"""What the paper's released code does where it differs from the paper: each file one deviation.

Nothing here is a right sampler, or a problem that anybody should study. It is here so that a
published number can be put beside the behaviour that made it. Names begin with `released-` and are
listed on request only; docs/released.md has every deviation with its place and its switch. With
all switches off, an agent is the right one that it deviates from.

It may import `testbeds`, `agents` and what is below.
"""

from feelgood.core.registry import import_modules

import_modules(__name__, __path__)
