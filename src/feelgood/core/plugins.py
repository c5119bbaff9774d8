"""Files and modules outside the package that register agents and testbeds."""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from feelgood.core.errors import FeelgoodError
from feelgood.core.sources import DIGEST, digest_of


def load_plugins(plugins: Sequence[str] | None) -> None:
    """Import the files and modules that register more agents and testbeds.

    A file that was loaded before is loaded again only if it has changed; what it registers then
    replaces what it registered before.
    """
    for plugin in plugins or ():
        try:
            if Path(plugin).suffix == ".py":
                _load_file(plugin)
            else:
                importlib.import_module(plugin)
        except FeelgoodError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a file that ends the program is no plug-in
            raise FeelgoodError(
                f"plugin '{plugin}' could not be imported ({_said(error)}): mend it or leave it "
                "out."
            ) from error


def _said(error: BaseException) -> str:
    """An error of somebody's code in one line."""
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:
        return kind
    return f"{kind}: {text}" if text else kind


def _load_file(plugin: str) -> None:
    path = Path(plugin).resolve()
    # A name that no other module has: `types.py` must not stand in for Python's own `types`.
    place = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    name = f"feelgood_plugin_{place}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not path.exists():
        raise FeelgoodError(f"plugin file '{plugin}' does not exist: check the path.")
    content = path.read_bytes()
    digest, before = digest_of(content), sys.modules.get(name)
    if before is not None and getattr(before, DIGEST, None) == digest:
        return
    module = importlib.util.module_from_spec(spec)
    setattr(module, DIGEST, digest)
    sys.modules[name] = module
    try:
        # What runs is what was hashed, and never an older compiled copy.
        exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise
