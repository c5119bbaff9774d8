"""pyarrow, or one sentence on how to get it: tables and stored results are an extra.

`from feelgood.core.arrow import pa, pq` imports what is asked for, and nothing else.
"""

import importlib
from typing import TYPE_CHECKING, Any

from feelgood.core.errors import missing_package

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow import csv, feather, interchange, ipc

#: The module behind each name.
MODULES = {
    "pa": "pyarrow",
    "pc": "pyarrow.compute",
    "pq": "pyarrow.parquet",
    "csv": "pyarrow.csv",
    "feather": "pyarrow.feather",
    "interchange": "pyarrow.interchange",
    "ipc": "pyarrow.ipc",
}
__all__ = ["csv", "feather", "interchange", "ipc", "pa", "pc", "pq"]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(MODULES[name])
    except ModuleNotFoundError:
        what = "tables, logs and stored results need"
        raise missing_package(what, "pyarrow", "files") from None
