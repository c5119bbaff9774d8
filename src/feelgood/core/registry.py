"""Names to builders: one decorator, one table for agents and one for testbeds.

A registered class is a *family*. Most families have one name (`lints`); some carry parameters in
the name (`linear-20`, `wheel-0.5`) or compose it from parts (`psfglmcts`). A family says which
names it knows through `parse`, so that adding one is one decorator in one file.
"""

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from feelgood.core.errors import FeelgoodError, did_you_mean, shown
from feelgood.core.settings import Setting, check_settings, settings_of
from feelgood.core.sources import place_of, source_digest

T = TypeVar("T")

#: A name that can be written on a command line, in a list and in a study file.
_NAME = re.compile(r"[\w.:+-]+")


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that a new file registers what is in it."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")


@dataclasses.dataclass(frozen=True)
class Entry(Generic[T]):
    """One buildable thing: a name, its settings and how to make it from them."""

    name: str
    doc: str
    settings: Mapping[str, Setting]
    make: Callable[[Mapping[str, Any]], T]
    #: Of a testbed that takes long to build: its `spec` and `rounds` for these settings, found in
    #: a quicker way, or None.
    outline: Callable[[Mapping[str, Any]], Any] | None = None
    #: What to say of it besides `doc`, where building it only for its docstring takes long.
    words: Callable[[], str] | None = None

    def build(self, values: Mapping[str, Any] | Any | None = None) -> T:
        """The object, with `values` checked and everything else at its default."""
        return self.make(check_settings(self.name, self.settings, values))

    def resolve(self, values: Mapping[str, Any] | Any | None = None) -> dict[str, Any]:
        """All settings, checked, without building."""
        return check_settings(self.name, self.settings, values)


@dataclasses.dataclass(frozen=True)
class Family(Generic[T]):
    """A group of names that one piece of code understands.

    `names` are those that a listing shows; `more_names` are shown on request; `parse` may
    understand others still. `defined` is the class or function that it is about, `parse` where
    there is none: registering it again, from the same file or notebook, replaces the family.
    `family` is the heading that a listing shows over its names.
    """

    label: str
    doc: str
    parse: Callable[[str], Entry[T] | None]
    names: tuple[str, ...]
    more_names: tuple[str, ...] = ()
    defined: Any = None
    family: str = ""


class Registry(Generic[T]):
    """Names to entries. The same thing again replaces itself; another under its name is refused.

    An unknown name gets "did you mean".

    `packages` are those whose modules register things; they are imported at the first look.

    **Example:**

    >>> import feelgood
    >>> "linucb" in feelgood.AGENTS, "linear-20" in feelgood.TESTBEDS
    (True, True)
    >>> float(feelgood.AGENTS["linucb"].build({"alpha": 0.5}).alpha)
    0.5
    """

    def __init__(self, kind: str, *packages: str) -> None:
        self.kind = kind
        self._packages = packages
        self._families: dict[str, Family[T]] = {}
        self._digests: dict[str, str | None] = {}

    def add(self, family: Family[T]) -> None:
        """Add a family; its names must be new, or its own from an earlier time."""
        before = self._families.get(family.label)
        same = before is not None and self._where(before) == self._where(family)
        for name in family.names:
            if not isinstance(name, str) or _NAME.fullmatch(name) is None:
                raise FeelgoodError(
                    f"the {self.kind} name {name!r} is not allowed: use letters, digits, dashes, "
                    "dots, colons, plus signs and underscores."
                )
        for name in (family.label, *family.names):
            owner = self._owner(name) or self._families.get(name)
            if owner is not None and not (same and owner is before):
                raise FeelgoodError(
                    f"the {self.kind} name '{name}' is taken: register under another name."
                )
        self._families[family.label] = family
        self._digests.pop(family.label, None)

    @staticmethod
    def _where(family: Family[T]) -> tuple[str, str]:
        return place_of(family.defined or family.parse)

    def digest(self, name: str) -> str | None:
        """SHA-256 of the source behind a name that a plug-in registered; None for our own."""
        family = self._family_of(name)
        if family is None:
            return None
        if family.label not in self._digests:
            self._digests[family.label] = source_digest(family.defined or family.parse)
        return self._digests[family.label]

    def register(
        self, name: str, doc: str | None = None, *, family: str = ""
    ) -> Callable[[type[T]], type[T]]:
        """Class decorator: register a class under one fixed name, listed below `family`."""

        def decorate(cls: type[T]) -> type[T]:
            text = doc or (cls.__doc__ or name).strip().splitlines()[0]
            entry = Entry(name, text, settings_of(cls), lambda values: cls(**values))
            names = (name,)
            parse = {name: entry}.get
            self.add(Family(name, text, parse, names, defined=cls, family=family))
            return cls

        return decorate

    def families(self) -> tuple[Family[T], ...]:
        """All families, in order of registration."""
        for package in self._packages:
            importlib.import_module(package)
        return tuple(self._families.values())

    def names(self, more: bool = False) -> tuple[str, ...]:
        """The names to list; with `more`, also the less usual ones."""
        return tuple(
            name
            for family in self.families()
            for name in (*family.names, *(family.more_names if more else ()))
        )

    def by_family(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Known names below their headings; those of one heading need not be neighbours."""
        out: dict[str, list[str]] = {}
        for name in names:
            family = self._family_of(name)
            out.setdefault("" if family is None else family.family, []).append(name)
        return out

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: Any) -> bool:
        try:
            return isinstance(name, str) and self._find(name) is not None
        except FeelgoodError:  # a name whose parts do not go together
            return False

    def __getitem__(self, name: Any) -> Entry[T]:
        if not isinstance(name, str):
            raise FeelgoodError(f"{shown(name)} cannot be the name of any {self.kind}: use a text.")
        entry = self._find(name)
        if entry is None:
            raise FeelgoodError(
                f"unknown {self.kind} {shown(name)}: {did_you_mean(name, self.names(more=True))}"
            )
        return entry

    def _find(self, name: str) -> Entry[T] | None:
        family = self._family_of(name)
        return None if family is None else family.parse(name)

    def _family_of(self, name: str) -> Family[T] | None:
        self.families()  # all of them are there
        return self._owner(name)

    def _owner(self, name: str) -> Family[T] | None:
        """Of those that are there so far: while packages are imported, no look imports others."""
        return next((f for f in self._families.values() if f.parse(name) is not None), None)
