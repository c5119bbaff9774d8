"""Settings of agents and testbeds: declared once, beside the field they set.

A component is a frozen `eqx.Module`; a field declared with `setting(...)` becomes a setting with
a default, a range and a sentence of documentation. Numbers become array leaves, so that a sweep
over them is one compiled program; settings that shape the program itself are `static`.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from feelgood.errors import FeelgoodError, did_you_mean

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

    @property
    def kind(self) -> type:
        """The Python type that values have."""
        return type(self.default)

    def describe(self) -> str:
        """The values allowed, in words."""
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
        wrong = FeelgoodError(f"{owner}.{name} = {value!r} is not allowed: use {self.describe()}.")
        if self.choices is not None:
            for choice in self.choices:
                if str(value).lower() == str(choice).lower():
                    return choice
            raise wrong
        if self.form is not None:
            if re.fullmatch(self.form[0], str(value)) is None:
                raise wrong
            return str(value)
        if self.kind is bool:
            text = str(value).lower()
            if text not in ("true", "false"):
                raise wrong
            return text == "true"
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise wrong from None
        if isinstance(value, bool) or not math.isfinite(number):
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
            self._check_stored(owner, name, value, number)
        return self.kind(number)

    def _check_stored(self, owner: str, name: str, value: Any, number: float) -> None:
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
            f"{owner}.{name} = {value!r} is not allowed: in single precision, in which everything "
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
) -> Any:
    """Declare a field of an `eqx.Module` as a setting.

    `low` and `high` are inclusive bounds, `above` an exclusive one; `form` is the pattern of a
    text and the same in words. Whole numbers, truth values, texts and choices are static unless
    told otherwise: they shape the compiled program.
    """
    if static is None:
        static = not isinstance(default, float)
    rule = Setting(default, doc, low, high, above, choices, static, form)
    metadata = {_KEY: rule}
    if static:
        return eqx.field(default=default, static=True, metadata=metadata)
    return eqx.field(
        default=default,
        converter=lambda value: jnp.asarray(value, jnp.float32),
        metadata=metadata,
    )


def settings_of(component: type) -> dict[str, Setting]:
    """The settings that a component class declares, in order."""
    return {
        field.name: field.metadata[_KEY]
        for field in dataclasses.fields(component)
        if _KEY in field.metadata
    }


def check_settings(
    owner: str, rules: Mapping[str, Setting], values: Mapping[str, Any]
) -> dict[str, Any]:
    """All settings of `owner`: the given values checked, the others at their defaults."""
    for name in values:
        if name not in rules:
            hint = did_you_mean(name, rules) if rules else "it has no settings."
            raise FeelgoodError(f"{owner} has no setting '{name}': {hint}")
    return {
        name: rule.check(owner, name, values[name]) if name in values else rule.default
        for name, rule in rules.items()
    }
