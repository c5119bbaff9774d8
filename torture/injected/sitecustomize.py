"""Python imports this at its start, where this folder is on its path: faults in real processes.

It must not print: a worker's standard output carries its messages.
"""

import os
import sys

if os.environ.get("TORTURE_FAULT"):
    sys.path.insert(0, os.environ["TORTURE_ROOT"])
    from torture.faults import install_from_environment

    install_from_environment()
