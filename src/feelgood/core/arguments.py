"""Checks of what is given to public functions: the value as it is used, or one sentence."""

import contextlib
import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.policy import Policy
from feelgood.core.testbed import Testbed
from feelgood.core.texts import seeds_in, whole_number

MAX_ROUNDS = 100_000_000
MAX_SEEDS = 100_000

#: `N` for 0 … N − 1, `"A:B"`, or the seeds themselves, a list or an array.
Seeds = int | str | Sequence[int] | Any


def as_whole(value: Any, low: int, high: int | None = None) -> int | None:
    """A whole number between `low` and `high`; None for anything else."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        return None
    return number


def parse_whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number between `low` and `high`."""
    number = as_whole(value, low, high)
    if number is None:
        top = "" if high is None else f" and at most {high:,}"
        raise FeelgoodError(
            f"{name} = {shown(value)} is not allowed: use a whole number at least {low:,}{top}."
        )
    return number


def parse_rounds(rounds: Any) -> int:
    """A number of rounds that makes sense; a text such as `"10k"` or `"1e4"` is one too."""
    try:
        if isinstance(rounds, str):
            with contextlib.suppress(ValueError):
                rounds = whole_number(rounds)
        return parse_whole("rounds", rounds, 1, MAX_ROUNDS)
    except FeelgoodError:
        raise FeelgoodError(
            f"rounds = {shown(rounds)} is not allowed: use 1 to {MAX_ROUNDS:,} rounds."
        ) from None


def parse_seeds(seeds: Any) -> tuple[int, ...]:
    """`10` is 0 … 9, `"A:B"` is A … B − 1, `"A,B,C"`, a list or an array is itself."""
    hint = "give a positive number N, a range A:B with 0 ≤ A < B, or a list of seeds."
    wrong = FeelgoodError(f"seeds = {shown(seeds)} is not allowed: {hint}")
    if isinstance(seeds, (bool, np.bool_, Mapping, set, frozenset, bytes)):
        raise wrong
    if isinstance(seeds, str):
        try:
            seeds = seeds_in(seeds)
        except ValueError:
            raise wrong from None
    elif not isinstance(seeds, Sequence) and np.ndim(seeds) == 0:
        try:
            seeds = range(operator.index(seeds))
        except TypeError:
            raise wrong from None
    try:
        few = len(seeds) <= MAX_SEEDS
        values = tuple(_seed(s) for s in seeds) if few else ()
    except TypeError:
        raise wrong from None
    except OverflowError:  # more than `len` can count
        few = False
    if not few:
        raise FeelgoodError(f"seeds = {shown(seeds)} are too many: use at most {MAX_SEEDS:,}.")
    if not values or min(values) < 0 or max(values) >= 2**32 or len(set(values)) != len(values):
        raise wrong
    return values


def _seed(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or value is np.ma.masked:
        raise TypeError
    return operator.index(value)


def parse_settings(name: str, values: Any) -> dict[str, Any]:
    """Settings by name: a mapping from texts."""
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise FeelgoodError(
            f"{name} = {shown(values)} is not allowed: use a dictionary of names and values."
        )
    return dict(values)


def parse_name(name: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise FeelgoodError(f"{name} = {shown(value)} is not allowed: use a name, as a text.")
    return str(value)


def parse_names(name: str, values: Any) -> tuple[str, ...]:
    """Names: one, or a list of them."""
    names = [values] if isinstance(values, str) else values
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise FeelgoodError(f"{name} = {shown(values)} is not allowed: use a list of names.")
    if not names:
        raise FeelgoodError("no agent was named: name at least one, such as lints.")
    return tuple(names)


def parse_choice(name: str, value: Any, known: Iterable[str]) -> str:
    """One of some names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        hint = did_you_mean(value, names) if isinstance(value, str) else None
        raise FeelgoodError(
            f"unknown {name} {shown(value)}: {hint or 'use one of ' + ', '.join(names) + '.'}"
        )
    return value


def parse_path(value: Any, what: str = "file") -> Path:
    """A path."""
    text = str(value) if isinstance(value, (str, os.PathLike)) else ""
    if not text or len(text) > 4096 or not text.isprintable():
        raise FeelgoodError(f"{shown(value)} is not the path of a {what}: give a text or a Path.")
    return Path(text)


def parse_number(name: str, value: Any, what: str = "a number", finite: bool = True) -> float:
    """A number, `finite` or any; `what` says in words which."""
    whole = isinstance(value, (int, float, np.integer, np.floating)) or (
        hasattr(value, "dtype") and np.ndim(value) == 0 and np.isrealobj(value)
    )
    if whole and not isinstance(value, (bool, np.bool_, np.ma.MaskedArray)):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            finite, number = True, math.nan
        if math.isfinite(number) or not finite:
            return number
    raise FeelgoodError(f"{name} = {shown(value)} is not allowed: use {what}.")


def parse_level(name: str, value: Any) -> float:
    """A probability strictly between 0 and 1."""
    what = "a number between 0 and 1"
    level = parse_number(name, value, what)
    if not 0.0 < level < 1.0:
        raise FeelgoodError(f"{name} = {shown(value)} is not allowed: use {what}.")
    return level


def parse_values(name: str, values: Any) -> Float[np.ndarray, " values"]:
    """A list or an array of numbers with one axis; NaN and infinity are allowed."""
    array = None
    if not isinstance(values, (str, bytes, Mapping, set, frozenset, np.ma.MaskedArray)):
        with contextlib.suppress(Exception):
            array = np.asarray(values)
    if array is None or array.ndim != 1 or (array.dtype.kind not in "iuf" and array.size):
        raise FeelgoodError(  # told only now: to show an array takes longer than to use it
            f"{name} = {shown(values)} is not allowed: use an array of numbers with one axis."
        )
    return array.astype(np.float64, copy=False)


def parse_table(name: str, values: Any) -> dict[str, Float[np.ndarray, "..."]]:
    """Arrays of numbers by name."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise FeelgoodError(
            f"{name} = {shown(values)} is not allowed: use a dictionary of names and arrays."
        )
    return {key: parse_values(f"{name}[{shown(key, 30)}]", value) for key, value in values.items()}


def require_callable(name: str, value: Any) -> None:
    """Refuse what is neither None nor a function."""
    if value is not None and not callable(value):
        raise FeelgoodError(f"{name} = {shown(value)} is not allowed: use a function, or None.")


def require_kind(value: Any, kind: type, what: str, example: str) -> None:
    """Refuse what is no object of `kind`, and say how to make it one."""
    if isinstance(value, kind):
        return
    base = f"feelgood.{kind.__name__}" if kind in (Policy, Testbed) else kind.__name__
    if isinstance(value, type) and issubclass(value, kind):
        raise FeelgoodError(
            f"{value.__name__} is a class: make an object of it, {value.__name__}()."
        )
    if isinstance(value, type):
        raise FeelgoodError(
            f"the class {value.__name__} is no {what}: derive it from {base} and give an object, "
            f"{value.__name__}()."
        )
    if any(hasattr(value, name) for name in ("act", "update", "rewards", "mean_rewards")):
        other = Testbed if kind is Policy else Policy
        if isinstance(value, other):
            raise FeelgoodError(
                f"{type(value).__name__} is no {what}: give {example} in its place."
            )
        raise FeelgoodError(
            f"{shown(value, 60)} is no {what}: derive its class {type(value).__name__} from {base}."
        )
    raise FeelgoodError(f"{shown(value, 60)} is no {what}: use {example}.")


def require_policy(value: Any) -> None:
    """Refuse what is no agent."""
    require_kind(
        value, Policy, "agent", "a name such as 'lints', or an object of a feelgood.Policy"
    )


def parse_policies(policies: Any) -> list[Policy]:
    """One agent's settings: an object, or several in a list."""
    if isinstance(policies, (Policy, type)) or not isinstance(policies, (list, tuple)):
        policies = [policies]
    if not policies:
        raise FeelgoodError("there is no agent to run: give at least one.")
    for policy in policies:
        require_kind(policy, Policy, "agent", "an object of a feelgood.Policy")
    return list(policies)


def require_testbed(value: Any) -> None:
    """Refuse what is no testbed."""
    require_kind(
        value, Testbed, "testbed", "a name such as 'linear-20', or an object of a feelgood.Testbed"
    )
