"""The paper's published numbers, one per row, as they ship inside the package."""

import csv
import dataclasses
import functools
from importlib.resources import files
from typing import Literal, cast, get_args

from feelgood.core.errors import FeelgoodError

PublishedMetric = Literal["cumulative_regret", "simple_regret"]


@dataclasses.dataclass(frozen=True)
class Published:
    """One published number: mean ± sample standard deviation over seeds.

    `agent` and `testbed` are named as the paper's tables name them; λ, β, δ and γ are None where
    the table does not give them. `beta` is the paper's symbol, not a setting (see `presets`).
    """

    table: str
    testbed: str
    agent: str
    lam: float | None
    beta: float | None
    delta: float | None
    gamma: float | None
    metric: PublishedMetric
    mean: float
    std: float
    seeds: int


@functools.cache
def all_published() -> tuple[Published, ...]:
    """All 545 numbers, in the order of the paper's tables."""
    text = files("feelgood.paper").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(_row(line) for line in csv.DictReader(text.splitlines()))


def _row(line: dict[str, str]) -> Published:
    def number(name: str) -> float | None:
        return float(line[name]) if line[name] else None

    known = get_args(PublishedMetric)
    if line["metric"] not in known:
        raise FeelgoodError(
            f"published.csv has the metric '{line['metric']}': use {', '.join(known)}."
        )
    return Published(
        table=line["table"],
        testbed=line["testbed"],
        agent=line["agent"],
        lam=number("lam"),
        beta=number("beta"),
        delta=number("delta"),
        gamma=number("gamma"),
        metric=cast(PublishedMetric, line["metric"]),
        mean=float(line["mean"]),
        std=float(line["std"]),
        seeds=int(line["seeds"]),
    )


def published(
    *,
    table: str | None = None,
    testbed: str | None = None,
    agent: str | None = None,
    lam: int | float | None = None,
    beta: int | float | None = None,
    metric: PublishedMetric | None = None,
) -> tuple[Published, ...]:
    """The numbers that match everything given.

    >>> from feelgood.paper.published_numbers import published
    >>> published(table="main", testbed="linear-20", agent="lmcts", beta=1000)[0].mean
    62.6
    """
    wanted = {"table": table, "testbed": testbed, "agent": agent, "metric": metric}
    numbers = {"lam": lam, "beta": beta}
    given = {name: value for name, value in (wanted | numbers).items() if value is not None}
    return tuple(
        row
        for row in all_published()
        if all(getattr(row, name) == value for name, value in given.items())
    )
