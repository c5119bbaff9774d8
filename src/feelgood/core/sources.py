"""Where code comes from: the file behind a class, and a hash of what it was read from."""

import hashlib
import inspect
import sys
from pathlib import Path
from typing import Any

#: Our own package. Its code is not part of a cell's identity: `RESULTS_VERSION` stands for it.
_OWN = __name__.partition(".")[0]
#: A module that was read by us holds the SHA-256 of what was read under this name.
DIGEST = "__feelgood_digest__"


def place_of(defined: Any) -> tuple[str, str]:
    """Where a class or function is defined: its file, or its module in a notebook, and its name."""
    module = getattr(defined, "__module__", None) or ""
    file = getattr(sys.modules.get(module), "__file__", None)
    name = getattr(defined, "__qualname__", type(defined).__qualname__)
    return (str(Path(file).resolve()) if file else module), name


def source_digest(defined: Any) -> str | None:
    """SHA-256 of the source that defines a class or function; None for our own package.

    That source is its file, or all Python files of the package that it belongs to. What is defined
    in a notebook is known by its own lines.
    """
    name = getattr(defined, "__module__", None) or ""
    top = sys.modules.get(name.partition(".")[0])
    module = sys.modules.get(name)
    if top is None or module is None or top.__name__ == _OWN:
        return None
    known = getattr(module, DIGEST, None)
    if known is not None:
        return str(known)
    try:
        folders = sorted(getattr(top, "__path__", ()))
        files = [file for folder in folders for file in sorted(Path(folder).rglob("*.py"))]
        if not folders:
            file = getattr(module, "__file__", None)
            files = [Path(file)] if file else []
        parts = [file.read_bytes() for file in files] or [inspect.getsource(defined).encode()]
    except (OSError, TypeError):
        return None
    return digest_of(*parts)


def digest_of(*parts: bytes) -> str:
    """SHA-256 of the contents of some files, in this order."""
    if len(parts) > 1:
        parts = tuple(hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(b"".join(parts)).hexdigest()
