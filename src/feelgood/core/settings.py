"""Settings of agents and testbeds: declared once, beside the field they set.

A component is a frozen `eqx.Module`; a field declared with `setting(...)` becomes a setting with
a default, a range and a sentence of documentation. Numbers become array leaves, so that a sweep
over them is one compiled program; settings that shape the program itself are `static`. A number may
be left open by a word: then there is no leaf, and the program finds the number itself.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from feelgood.core.errors import FeelgoodError, did_you_mean, shown

_KEY = "feelgood.setting"
#: The largest number of float32, and the smallest that has all its digits: processors take what is
#: smaller as 0.
_LARGEST, _SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
Bound = int | float | None


@dataclasses.dataclass(frozen=True)
class Setting:
    """The rule for one setting."""

    default: Any
    doc: str
    low: Bound = None
    high: Bound = None
    above: Bound = None
    choices: tuple[Any, ...] | None = None
    static: bool = False
    #: For text: the pattern of allowed values, and the same in words.
    form: tuple[str, str] | None = None
    #: For a number: the word that leaves it open, such as "learned".
    open_word: str | None = None
    #: The range that a search tries, evenly in the logarithm; None: it is not searched.
    tune: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.tune is None:
            return
        low, high = self.tune
        if self.static or self.kind is not float or not 0.0 < low < high:
            raise FeelgoodError(
                f"tune = {shown(self.tune)} is not allowed: use two numbers, 0 < low < high, for a "
                "setting that is a number and shapes no program."
            )
        for end in self.tune:
            self.check("", "tune", end)

    @property
    def kind(self) -> type:
        """The Python type that values have."""
        return float if self.open_word is not None else type(self.default)

    def describe(self) -> str:
        """The values allowed, in words."""
        if self.open_word is not None:
            return f"{self.open_word} or {dataclasses.replace(self, open_word=None).describe()}"
        if self.choices is not None:
            return "one of " + ", ".join(str(c) for c in self.choices)
        if self.form is not None:
            return self.form[1]
        if self.kind is bool:
            return "true or false"
        noun = "a whole number" if self.kind is int else "a finite number"
        bounds = []
        if self.above is not None:
            bounds.append(f"above {self.above:g}")
        if self.low is not None:
            bounds.append(f"at least {self.low:g}")
        if self.high is not None:
            bounds.append(f"at most {self.high:g}")
        return " ".join([noun, " and ".join(bounds)]).strip()

    def check(self, owner: str, name: str, value: Any) -> Any:
        """The value as the right Python type, or a `FeelgoodError` that says what is allowed."""
        label = f"{owner}.{name}" if owner else name
        wrong = FeelgoodError(f"{label} = {shown(value)} is not allowed: use {self.describe()}.")
        try:
            text = str(value)
        except Exception:
            raise wrong from None
        if self.open_word is not None and text.lower() == self.open_word:
            return self.open_word
        if self.choices is not None:
            for choice in self.choices:
                if text.lower() == str(choice).lower():
                    return choice
            raise wrong
        if self.form is not None:
            if re.fullmatch(self.form[0], text) is None:
                raise wrong
            return text
        if self.kind is bool:
            if text.lower() not in ("true", "false"):
                raise wrong
            return text.lower() == "true"
        # Numpy would take arrays of one entry, masked and complex numbers with a mere warning.
        if getattr(value, "ndim", 0) or isinstance(value, (bool, np.bool_, np.ma.MaskedArray)):
            raise wrong
        try:
            number = math.nan if np.iscomplexobj(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            raise wrong from None
        if not math.isfinite(number):
            raise wrong
        if self.kind is int and number != int(number):
            raise wrong
        if self.above is not None and not number > self.above:
            raise wrong
        if self.low is not None and not number >= self.low:
            raise wrong
        if self.high is not None and not number <= self.high:
            raise wrong
        if self.kind is float and not self.static:
            self._check_stored(label, value, number)
        return self.kind(number)

    def _check_stored(self, label: str, value: Any, number: float) -> None:
        """Refuse a number that the programs, which compute in float32, would not see as it is."""
        if abs(number) > _LARGEST:
            seen, use = "infinite", f"at most {_LARGEST:.2g} in size"
        elif 0.0 < abs(number) < _SMALLEST:
            seen, use = "0", f"at least {_SMALLEST:.2g} in size"
        elif self.above is not None and not float(np.float32(number)) > self.above:
            seen, use = f"{self.above:g}", f"clearly above {self.above:g}"
        else:
            return
        raise FeelgoodError(
            f"{label} = {shown(value)} is not allowed: in single precision, in which everything "
            f"is computed, it is {seen}; use a number {use}."
        )


def setting(
    default: Any,
    doc: str,
    *,
    low: Bound = None,
    high: Bound = None,
    above: Bound = None,
    choices: tuple[Any, ...] | None = None,
    static: bool | None = None,
    form: tuple[str, str] | None = None,
    open_word: str | None = None,
    tune: tuple[float, float] | None = None,
) -> Any:
    """Declare a field of an `eqx.Module` as a setting.

    `low` and `high` are inclusive bounds, `above` an exclusive one; `form` is the pattern of a
    text and the same in words. `open_word` is a word that a number setting takes too: the field is
    then None, and the program another one than with a number. `tune` is the range that
    `feelgood.tune` searches, evenly in the logarithm; without it the setting is not searched. Whole
    numbers, truth values, texts and choices are static unless told otherwise: they shape the
    compiled program. A value that is not allowed is refused when an object is made.

    **Example:**

    >>> from feelgood.agents import LinUCB
    >>> LinUCB(alpha=-1.0)
    Traceback (most recent call last):
    feelgood.FeelgoodError: alpha = -1.0 is not allowed: use a finite number at least 0 \
and at most 1e+09.
    """
    if static is None:
        static = not isinstance(default, float) and open_word is None
    rule = Setting(default, doc, low, high, above, choices, static, form, open_word, tune)

    # Without an annotation of `value`, a wrong type gets our sentence from run-time checkers too.
    def convert(value) -> Any:  # type: ignore[no-untyped-def]
        if isinstance(value, jax.core.Tracer):
            return value
        if isinstance(value, jax.Array) and value.ndim and not static:  # one value per chain
            for one in np.unique(value):
                rule.check("", field.name, public(one))
            return value.astype(jnp.float32)
        # The field knows its name once its class is made.
        checked = rule.check("", field.name, rule.open_word if value is None else public(value))
        if checked == open_word is not None:
            return None
        return checked if static else jnp.asarray(checked, jnp.float32)

    field: Any = eqx.field(default=default, converter=convert, static=static, metadata={_KEY: rule})
    return field


def public(value: Any) -> Any:
    """A setting as it was given: 0.01, not the nearest float32 written out."""
    is_number = getattr(value, "dtype", None) == np.float32 and np.ndim(value) == 0
    return float(str(np.float32(value))) if is_number else value


def own_settings(component: eqx.Module) -> dict[str, Any]:
    """The settings of an object and of its parts, by name; those of the whole win."""
    out: dict[str, Any] = {}
    for field in dataclasses.fields(component):
        value = getattr(component, field.name)
        if _KEY not in field.metadata and isinstance(value, eqx.Module):
            out = own_settings(value) | out
        elif _KEY in field.metadata:
            open_word = field.metadata[_KEY].open_word
            out |= {field.name: open_word if value is None else public(value)}
    return out


def settings_of(component: type) -> dict[str, Setting]:
    """The settings that a component class declares, in order."""
    return {
        field.name: field.metadata[_KEY]
        for field in dataclasses.fields(component)
        if _KEY in field.metadata
    }


def check_settings(
    owner: str, rules: Mapping[str, Setting], values: Mapping[str, Any] | Any | None
) -> dict[str, Any]:
    """All settings of `owner`: the given values checked, the others at their defaults."""
    values = {} if values is None else values
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise FeelgoodError(
            f"settings of {owner} = {shown(values)} are not allowed: use a dictionary of names and "
            "values."
        )
    for name in values:
        if name not in rules:
            hint = did_you_mean(name, rules) if rules else "it has no settings."
            raise FeelgoodError(f"{owner} has no setting {shown(name)}: {hint}")
    return {
        name: rule.check(owner, name, values[name]) if name in values else rule.default
        for name, rule in rules.items()
    }
