"""All agents, or all testbeds, as Markdown: formula, citation, settings and a command each."""

from typing import Any

from feelgood.api.describing import example_of, texts_of
from feelgood.core.registry import Entry, Registry

HEADS = {
    "agent": (
        "# All agents\n\n"
        "Made from the registry: what `feelgood list NAME` says of each. "
        "[The agents](../agents.md) compares them, [the MCMC agents](../samplers.md) explains "
        "the names of the Thompson samplers, and [networks](../neural.md) those with a network."
    ),
    "testbed": (
        "# All testbeds\n\n"
        "Made from the registry: what `feelgood list NAME` says of each. "
        "[Datasets](../datasets.md) says where real data come from, and "
        "[worlds](../worlds.md) what the hard problems are for."
    ),
}


def entry_sections(registry: Registry[Any]) -> str:
    """The page of a registry; names below their families."""
    lines = [HEADS[registry.kind], ""]
    for family, names in registry.by_family(registry.names()).items():
        lines += [f"## {family}", ""] if family else []
        for name in names:
            lines += _section(registry[name], registry.kind, "###" if family else "##")
    return "\n".join(lines)


def _section(entry: Entry[Any], kind: str, head: str) -> list[str]:
    lines = [f"{head} {entry.name}", "", entry.doc, ""]
    for text in texts_of(entry):
        lines += [text, ""]
    lines += ["```text", example_of(entry, kind), "```", ""]
    return [*lines, *_settings(entry)]


def _settings(entry: Entry[Any]) -> list[str]:
    if not entry.settings:
        return ["It has no settings.", ""]
    rows = [
        f"| `{key}` | {rule.default} | {rule.describe()} | {rule.doc} |".replace("‖", "&#8214;")
        for key, rule in entry.settings.items()
    ]
    table = ["| setting | default | allowed | |", "|---|---|---|---|", *rows]
    return ['<details markdown="1"><summary>Settings</summary>', "", *table, "", "</details>", ""]
