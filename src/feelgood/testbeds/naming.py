"""Names with one number in them: `linear-20`, `wheel-0.5`."""

import re
from collections.abc import Callable
from typing import Any

from feelgood.core.registry import Entry, Family
from feelgood.core.settings import settings_of
from feelgood.core.testbed import TESTBEDS, Testbed


def register_numbered(
    prefix: str, field: str, examples: tuple[str, ...]
) -> Callable[[type[Testbed]], type[Testbed]]:
    """Register a testbed class under `prefix-NUMBER`, where the number sets the field `field`."""
    pattern = re.compile(rf"{prefix}-(\d+(?:\.\d+)?)", re.ASCII)

    def decorate(cls: type[Testbed]) -> type[Testbed]:
        doc = (cls.__doc__ or prefix).strip().splitlines()[0]
        declared = settings_of(cls)
        rules = {name: rule for name, rule in declared.items() if name != field}

        def parse(name: str) -> Entry[Testbed] | None:
            match = pattern.fullmatch(name)
            if match is None:
                return None

            def make(values: Any) -> Testbed:
                number = declared[field].check(name, field, match.group(1))
                return cls(**{field: number}, **values)

            return Entry(name, doc, rules, make)

        TESTBEDS.add(Family(f"{prefix}-NUMBER", doc, parse, examples, (), cls))
        return cls

    return decorate
