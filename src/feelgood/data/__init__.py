"""The real datasets, one file each: where it comes from, its check sums, its bandit problem.

Importing this package registers them all. It may import `core`.
"""

from feelgood.core.registry import import_modules

import_modules(__name__, __path__)
