"""The user's folders."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Where compiled programs and datasets are kept: `FEELGOOD_CACHE`, or the user's cache."""
    chosen = os.environ.get("FEELGOOD_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "feelgood"
