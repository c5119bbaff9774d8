"""Restaurant: its published file, and what a place pays."""

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from real_data import built, check_converter, check_testbed

from feelgood.data.datasets import load_dataset


def published(data: dict[str, np.ndarray]) -> dict[str, bytes]:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for table in ("rating_final", "userprofile"):
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(data[f"{table}_columns"].tolist())
            writer.writerows(data[table].tolist())
            packed.writestr(f"RCdata/{table}.csv", text.getvalue())
    return {"RCdata.zip": out.getvalue()}


def test_the_converter_gives_the_same_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_converter("restaurant", published, tmp_path, monkeypatch)


def test_the_testbed() -> None:
    check_testbed("restaurant", arms=130, paper=18, standard=63, rounds=10_000)


def test_restaurant_rewards_are_the_best_ratings() -> None:
    testbed = built("restaurant")
    data = load_dataset("restaurant")
    users = data["userprofile"][:, 0].tolist()
    places = sorted({int(place) for place in data["rating_final"][:, 1]})
    payoffs = np.asarray(testbed.payoffs)
    assert payoffs.shape == (138, 130)
    assert payoffs.sum() == (data["rating_final"][:, 2] == "2").sum() == 486
    for user, place, rating in data["rating_final"][:, :3].tolist():
        assert payoffs[users.index(user), places.index(int(place))] == (rating == "2")


def test_what_chance_and_one_place_cost_on_restaurant() -> None:
    """The figures that docs/datasets.md and the reason beside the published numbers give."""
    liked = np.asarray(built("restaurant").payoffs)
    ratings = load_dataset("restaurant")["rating_final"]
    rated = len({user for user, rating in ratings[:, [0, 2]].tolist() if rating != "0"})
    paid = (ratings[:, 2] != "0").sum()

    best = liked.max(axis=1).mean()
    assert round(10_000 * (best - liked.mean())) == 7_773
    assert round(10_000 * (best - liked.mean(axis=0).max())) == 6_739
    # As the released script has it, which pays for the middle rating too.
    assert round(10_000 * (rated / len(liked) - paid / liked.size)) == 8_697
