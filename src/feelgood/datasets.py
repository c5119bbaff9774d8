"""Real datasets: where they lie. They never enter the repository or the package."""

import os
from pathlib import Path

#: Dataset name to the archive that holds it.
FILES = {
    "adult": "adult.npz",
    "covertype": "covertype.npz",
    "magic": "magic.npz",
    "mushroom": "mushroom.npz",
    "shuttle": "shuttle.npz",
    "mnist": "mnist_784.npz",
    "cifar10": "cifar10.npz",
    "jester": "jester.npz",
    "financial": "financial.npz",
    "restaurant": "restaurant.npz",
}


def data_folder() -> Path | None:
    """The folder named by `FEELGOOD_DATA`, if it is set."""
    chosen = os.environ.get("FEELGOOD_DATA")
    return Path(chosen) if chosen else None


def availability() -> tuple[Path | None, list[str], list[str]]:
    """The data folder, the datasets found there, and those that are not."""
    folder = data_folder()
    found = [name for name, file in FILES.items() if folder and (folder / file).is_file()]
    return folder, found, [name for name in FILES if name not in found]
