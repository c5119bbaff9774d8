"""The names of the MCMC agents: `[p|u|svrg|j][fg|sfg]{lmc|mala|hmc}ts`.

A name is a preconditioner or a variant × a bonus × a kernel; it is parsed and the parts are
composed. Names that the paper never used come for free, and a name whose parts do not go together
is refused with the reason.
"""

import dataclasses
import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from feelgood.agents.thompson import Thompson
from feelgood.core.errors import FeelgoodError
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import Setting, settings_of
from feelgood.samplers import KERNELS, Kernel
from feelgood.samplers.blocks import VARIANTS
from feelgood.targets.bonus import FeelGood, SmoothedFeelGood, weighted_bonus

BONUSES: dict[str, tuple[type[FeelGood] | None, str]] = {
    "": (None, ""),
    "fg": (FeelGood, ", feel-good bonus"),
    "sfg": (SmoothedFeelGood, ", smoothed feel-good bonus"),
}

PAPER_AGENTS = tuple(
    [
        "lmcts",
        "plmcts",
        "fglmcts",
        "pfglmcts",
        "sfglmcts",
        "psfglmcts",
        "svrglmcts",
        "malats",
        "fgmalats",
        "sfgmalats",
        "hmcts",
        "phmcts",
        "fghmcts",
        "pfghmcts",
        "sfghmcts",
        "psfghmcts",
        "ulmcts",
        "ufglmcts",
        "usfglmcts",
    ]
)


def thompson_settings(
    kernel: type[Kernel],
    bonus: type[FeelGood] | None,
    preconditioned: bool,
    policy: type[Thompson] = Thompson,
) -> dict[str, Setting]:
    """The settings of an agent made of these parts: those of the parts that it has."""
    own = settings_of(policy)
    step = kernel.preconditioned_step if preconditioned else None
    default = kernel.default_step if step is None else step
    own["step"] = dataclasses.replace(own["step"], default=default)
    if not preconditioned:
        del own["lambda_reg"]
    if bonus is None or kernel.adjusted:
        del own["bonus_gradient"], own["bonus_batch"]
    return {**own, **settings_of(kernel), **(settings_of(bonus) if bonus else {})}


def compose(
    kernel: type[Kernel],
    bonus: type[FeelGood] | None,
    preconditioned: bool,
    values: Mapping[str, Any],
    policy: type[Thompson] = Thompson,
) -> Thompson:
    """The agent with these parts and settings."""

    def pick(component: type) -> dict[str, Any]:
        return {name: values[name] for name in settings_of(component) if name in values}

    inner = kernel(**pick(kernel))
    weighted = None if bonus is None else weighted_bonus(bonus, values)
    return policy(
        kernel=inner.without_bonus() if weighted is None else inner,
        bonus=weighted,
        preconditioned=preconditioned,
        **pick(policy),
    )


class Parts(NamedTuple):
    """A name, taken apart."""

    preconditioned: bool
    variant: str
    bonus_name: str
    kernel_name: str

    @property
    def kernel(self) -> type[Kernel]:
        """The kernel's class."""
        return KERNELS[self.variant, self.kernel_name]


def _pattern() -> re.Pattern[str]:
    """What names look like, with the kernels that are registered now."""
    variants = "|".join(["p", *VARIANTS])
    bonuses = "|".join(filter(None, BONUSES))
    kernels = "|".join(dict.fromkeys(name for _, name in KERNELS))
    return re.compile(f"((?:{variants})*)({bonuses})?({kernels})ts")


def parts_of(name: str) -> Parts | None:
    """The parts of a name; None for a name of another kind; an error for nonsense."""
    match = _pattern().fullmatch(name)
    if match is None:
        return None
    prefixes, bonus_name, kernel_name = match.group(1), match.group(2) or "", match.group(3)
    preconditioned = prefixes.startswith("p")
    variant = prefixes.removeprefix("p")
    kernel = KERNELS.get((variant, kernel_name))
    if kernel is None and variant in VARIANTS:
        base = next(base for v, base in KERNELS if v == variant)
        raise FeelgoodError(
            f"'{name}' makes no sense: {VARIANTS[variant]} go with {base} only, "
            f"use '{variant}{bonus_name}{base}ts'."
        )
    if kernel is None:
        raise FeelgoodError(
            f"'{name}' makes no sense: '{prefixes}' is not one of p, {' and '.join(VARIANTS)}, "
            f"use for example 'p{bonus_name}{kernel_name}ts'."
        )
    if preconditioned and not kernel.preconditionable:
        raise FeelgoodError(
            f"'{name}' makes no sense: {kernel.title} has no preconditioned form, "
            f"use '{variant}{bonus_name}{kernel_name}ts'."
        )
    if kernel.jumps and not bonus_name:
        raise FeelgoodError(
            f"'{name}' makes no sense: without a bonus there are no modes to jump between, "
            f"use '{'p' * preconditioned}{kernel_name}ts'."
        )
    return Parts(preconditioned, variant, bonus_name, kernel_name)


def _parse(name: str) -> Entry[Policy] | None:
    """The agent of this name; None for a name of another kind; an error for nonsense."""
    parts = parts_of(name)
    if parts is None:
        return None
    kernel, preconditioned = parts.kernel, parts.preconditioned
    bonus, bonus_text = BONUSES[parts.bonus_name]
    adjective = "preconditioned " if preconditioned else ""
    return Entry(
        name=name,
        doc=f"Thompson sampling by {adjective}{kernel.title}{bonus_text}.",
        settings=thompson_settings(kernel, bonus, preconditioned),
        make=lambda values: compose(kernel, bonus, preconditioned, values),
    )


def all_names() -> tuple[str, ...]:
    """Every name that composes."""
    return tuple(
        f"{p}{variant}{bonus}{kernel_name}ts"
        for (variant, kernel_name), kernel in KERNELS.items()
        for p, bonus in itertools.product(("", "p"), BONUSES)
        if (not p or kernel.preconditionable) and (bonus or not kernel.jumps)
    )


AGENTS.add(
    Family(
        label="MCMC Thompson sampling",
        doc="[p|u|svrg|j][fg|sfg]{lmc|mala|hmc}ts",
        parse=_parse,
        names=PAPER_AGENTS,
        more_names=tuple(name for name in all_names() if name not in PAPER_AGENTS),
        family="Thompson sampling by MCMC",
    )
)
