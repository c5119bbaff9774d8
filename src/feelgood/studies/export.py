"""Results as one file, for other programs."""

import json
from pathlib import Path

from feelgood.core.arrow import csv, feather, pa, pq

EXPORT_FORMATS = ("parquet", "csv", "arrow")


def write_table(table: pa.Table, path: Path, format_: str) -> None:
    """Write a store's rows. In CSV, columns that hold lists are JSON texts."""
    if format_ == "parquet":
        pq.write_table(table, path, compression="zstd")
    elif format_ == "arrow":
        feather.write_feather(table, path, compression="uncompressed")
    else:
        csv.write_csv(_flat(table), path)


def _flat(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [json.dumps(value) for value in table.column(i).to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts))
    return table
