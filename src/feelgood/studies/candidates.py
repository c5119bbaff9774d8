"""Which settings a search tries, and on which seeds.

Every agent has the same budget, a number of candidates. The first is what the agent has anyway;
the others are points of Halton's sequence in the logarithms of the settings that their owners mark
with `tune=(low, high)`. Such points fill a box more evenly than random ones, and those of a small
budget are the first of a larger one (Bergstra and Bengio, "Random search for hyper-parameter
optimization", JMLR 2012; Bousquet et al., "Critical hyper-parameters: no random, no cry", 2017).
"""

from collections.abc import Collection
from typing import Any

from feelgood.core.arguments import Seeds, parse_seeds, parse_whole
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS
from feelgood.engine.building import SettingValues

#: Seeds from here on are for searches, seeds below for comparisons: no run is in both.
HELD_OUT = 1_000_000
MAX_BUDGET = 1_000
MAX_HELD_OUT_SEEDS = 1_000
#: Candidates and seeds where no other numbers are given.
BUDGET, HELD_OUT_SEEDS = 16, 10
#: Significant digits of a value that is tried.
_DIGITS = 3


def held_out_seeds(count: int | Any) -> tuple[int, ...]:
    """So many seeds that no comparison uses."""
    number = parse_whole("seeds of the search", count, 1, MAX_HELD_OUT_SEEDS)
    return tuple(range(HELD_OUT, HELD_OUT + number))


def comparison_seeds(seeds: Seeds) -> tuple[int, ...]:
    """The seeds, none of which a search may use."""
    chosen = parse_seeds(seeds)
    if max(chosen) >= HELD_OUT:
        raise FeelgoodError(
            f"seed {max(chosen)} is held out for tuning: compare on seeds below {HELD_OUT:,}."
        )
    return chosen


def searched_settings(
    agent: str, start: SettingValues, fixed: Collection[str] = ()
) -> dict[str, tuple[float, float]]:
    """The settings to be searched, with their ranges.

    Those that are fixed are not, and those that start at 0, such as the weight of a bonus that the
    agent does not have, nor those that are left open by a word.
    """
    return {
        name: rule.tune
        for name, rule in AGENTS[agent].settings.items()
        if rule.tune and name not in fixed and isinstance(start[name], float) and start[name] > 0
    }


def make_candidates(
    agent: str, start: SettingValues, budget: int | Any, fixed: Collection[str] = ()
) -> list[dict[str, Any]]:
    """All settings of each candidate, `start` first; an agent without such settings has it alone.

    A value of the range (low, high) is low · (high/low)^u with u from Halton's sequence, to three
    digits. A point that has been tried already is passed over.
    """
    count = parse_whole("budget", budget, 1, MAX_BUDGET)
    ranges = searched_settings(agent, start, fixed)
    axes = list(zip(ranges.items(), _primes(len(ranges)), strict=True))
    chosen = [dict(start)]
    index = 0
    # A range too narrow for so many values is tried as far as it goes.
    while axes and len(chosen) < count and index < 100 * count:
        index += 1
        point = {
            name: min(high, _rounded(low * (high / low) ** radical_inverse(index, prime)))
            for (name, (low, high)), prime in axes
        }
        if {**start, **point} not in chosen:
            chosen.append({**start, **point})
    return chosen


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def radical_inverse(index: int, base: int) -> float:
    """The digits of `index` in this base, mirrored at the point: a coordinate in Halton's sequence.

    With index = Σ d_i base^i it is Σ d_i base^(−i−1) (Halton, "On the efficiency of certain
    quasi-random sequences of points", Numerische Mathematik 1960).
    """
    value, weight = 0.0, 1.0 / base
    while index:
        index, digit = divmod(index, base)
        value += digit * weight
        weight /= base
    return value


def _primes(count: int) -> list[int]:
    """The first primes."""
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found
