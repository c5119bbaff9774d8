"""The folder of a run: what is in it, and whether a run may be saved there. Quick to import."""

from pathlib import Path
from typing import Any

from feelgood.core.errors import FeelgoodError, shown

RESULTS_FILE, TABLE_FILE = "results.json", "results.parquet"
#: What a folder with results has, in the order in which it is put there.
FOLDER_PARTS = ("cells", TABLE_FILE, RESULTS_FILE, "manifest.jsonl")


def prepare_folder(folder: str | Path | Any, force: bool = False) -> Path:
    """Refuse a folder into which a run must not be saved; nothing is changed."""
    from feelgood.core.arguments import parse_path  # it imports NumPy

    place = parse_path(folder, "folder")
    try:
        if place.exists() and not place.is_dir():
            raise FeelgoodError(f"{place} is not a folder: choose another place.")
        there = [name for name in FOLDER_PARTS if (place / name).exists()]
    except OSError as error:
        raise unwritable(place, error) from None
    if there and not force:
        raise FeelgoodError(
            f"{place / there[-1]} exists already: choose another place, or force it."
        )
    if "manifest.jsonl" in there and RESULTS_FILE not in there:
        raise FeelgoodError(f"{place} is the store of a study: choose another folder.")
    return place


def unwritable(place: Path, error: OSError) -> FeelgoodError:
    """What to say of a folder that cannot be written."""
    return FeelgoodError(
        f"cannot write to {shown(str(place))} ({error.strerror or error}): choose another folder."
    )
