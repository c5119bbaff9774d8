"""Names with one number in them: `linear-20`, `wheel-0.5`."""

import re
from collections.abc import Callable
from typing import Any

from feelgood.core.errors import FeelgoodError, shown
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import settings_of
from feelgood.core.testbed import TESTBEDS, Testbed


def _plain(number: str) -> str:
    """A number without the zeros that say nothing: 20 for 020, 0.5 for 0.50."""
    whole, _, fraction = number.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def register_numbered(
    prefix: str, field: str, examples: tuple[str, ...], *, listed: bool = True
) -> Callable[[type[Testbed]], type[Testbed]]:
    """Register a testbed class under `prefix-NUMBER`, where the number sets the field `field`.

    A testbed has one name: `linear-020` and `wheel-0.50` are refused. One that is not `listed` is
    shown on request only.
    """
    pattern = re.compile(rf"{prefix}-(\d+(?:\.\d+)?)", re.ASCII)

    def decorate(cls: type[Testbed]) -> type[Testbed]:
        doc = (cls.__doc__ or prefix).strip().splitlines()[0]
        declared = settings_of(cls)
        rules = {name: rule for name, rule in declared.items() if name != field}

        def parse(name: str) -> Entry[Testbed] | None:
            match = pattern.fullmatch(name)
            if match is None:
                return None
            plain = f"{prefix}-{_plain(match.group(1))}"
            if name != plain:
                raise FeelgoodError(f"unknown testbed {shown(name)}: did you mean {shown(plain)}?")

            def make(values: Any) -> Testbed:
                number = declared[field].check(name, field, match.group(1))
                return cls(**{field: number}, **values)

            return Entry(name, doc, rules, make)

        names, more = (examples, ()) if listed else ((), examples)
        TESTBEDS.add(Family(f"{prefix}-NUMBER", doc, parse, names, more, cls))
        return cls

    return decorate
