"""Names of the agents of the released code: `released-` before that of the right agent."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from feelgood.agents.grammar import BONUSES, compose, thompson_settings
from feelgood.agents.neural import TrainedAgent
from feelgood.core.policy import AGENTS, Policy
from feelgood.core.registry import Entry, Family
from feelgood.core.settings import settings_of
from feelgood.released.waiting_thompson import ReleasedThompson
from feelgood.samplers.blocks import Kernel
from feelgood.targets.bonus import FeelGood, weighted_bonus

PREFIX = "released-"
#: The heading over these agents in a listing.
HEADING = "Released code"


def add_agents(entries: Sequence[Entry[Policy]], defined: Any) -> None:
    """Register agents that are listed on request only."""
    known = {entry.name: entry for entry in entries}
    AGENTS.add(
        Family(
            label=entries[0].name,
            doc=entries[0].doc,
            parse=known.get,
            names=(),
            more_names=tuple(known),
            defined=defined,
            family=HEADING,
        )
    )


def register_kernel_agents(kernel: type[Kernel], **bonus_of: str) -> None:
    """`released-NAME` for a kernel that is not in the grammar of names, each with its bonus."""

    def entry(name: str, bonus_name: str) -> Entry[Policy]:
        bonus, text = BONUSES[bonus_name]
        return Entry(
            name=f"{PREFIX}{name}",
            doc=f"Thompson sampling by {kernel.title}{text}.",
            settings=thompson_settings(kernel, bonus, False, ReleasedThompson),
            make=lambda values: compose(kernel, bonus, False, values, ReleasedThompson),
        )

    add_agents([entry(name, bonus) for name, bonus in bonus_of.items()], kernel)


def register_agent(name: str) -> Callable[[type[Policy]], type[Policy]]:
    """Class decorator: the agent `released-NAME`."""

    def keep(cls: type[Policy]) -> type[Policy]:
        doc = (cls.__doc__ or name).strip().splitlines()[0]
        entry = Entry(f"{PREFIX}{name}", doc, settings_of(cls), lambda values: cls(**values))
        add_agents([entry], cls)
        return cls

    return keep


def register_bonus_agent(
    name: str, agent: type[TrainedAgent], bonus: type[FeelGood] | None, text: str = ""
) -> None:
    """The agent `released-NAME`, with a bonus in its loss; `text` says that."""
    own, more = settings_of(agent), settings_of(bonus) if bonus else {}

    def make(values: Mapping[str, Any]) -> Policy:
        chosen = {key: values[key] for key in own}
        return agent(bonus=weighted_bonus(bonus, values) if bonus else None, **chosen)

    doc = (agent.__doc__ or name).strip().splitlines()[0].rstrip(".")
    add_agents([Entry(f"{PREFIX}{name}", f"{doc}{text}.", {**own, **more}, make)], agent)
