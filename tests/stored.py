"""What studies have written, and the processes that write it."""

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute

from feelgood.core.parquet import read_parquet
from feelgood.studies import Store, read_study
from feelgood.studies.cells import PROVENANCE


def arrays(file: Path) -> dict[str, pa.Table]:
    """Every cell's file without the columns that say when and where."""
    given = read_study(file)
    found: dict[str, pa.Table] = {}
    for part in given.plan.parts(given.store):
        cells = {c.id for c in part.study.cells}
        store = Store(part.folder, create=False)
        assert store.present() == cells
        assert not store.verify()
        for cell in cells:
            table = read_parquet(store.file(cell).read_bytes())
            found[cell] = table.drop_columns(list(PROVENANCE))
    return found


def assert_same_bytes(one: dict[str, pa.Table], other: dict[str, pa.Table]) -> None:
    """The same cells, and the same bits in all of them."""
    assert one.keys() == other.keys()
    for cell, table in one.items():
        assert table.equals(other[cell]), cell
        for name in ("final_regret", "curve_regret"):
            a, b = (
                np.asarray(pa.compute.list_flatten(t[name]) if "curve" in name else t[name])
                for t in (table, other[cell])
            )
            assert a.tobytes() == b.tobytes()


def children_of(parent: int) -> list[int]:
    """Processes that this one started."""
    listing = subprocess.run(
        ["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in listing.stdout.split()]
