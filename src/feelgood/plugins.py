"""Files and modules outside the package that register agents and testbeds."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from feelgood.errors import FeelgoodError


def load_plugins(plugins: Sequence[str] | None) -> None:
    """Import the files and modules that register more agents and testbeds."""
    for plugin in plugins or ():
        path = Path(plugin)
        try:
            if path.suffix == ".py":
                spec = importlib.util.spec_from_file_location(path.stem, path)
                if spec is None or spec.loader is None or not path.exists():
                    raise FeelgoodError(f"plugin file '{plugin}' does not exist: check the path.")
                module = importlib.util.module_from_spec(spec)
                sys.modules[path.stem] = module
                spec.loader.exec_module(module)
            else:
                importlib.import_module(plugin)
        except FeelgoodError:
            raise
        except Exception as error:
            raise FeelgoodError(
                f"plugin '{plugin}' could not be imported ({type(error).__name__}: {error}): "
                "mend it or leave it out."
            ) from error
