"""docs/commands.md, made from the commands themselves: `make docs`."""

from collections.abc import Iterator
from typing import Any

import typer

HEAD = """# Commands

Made from the program by `make docs`; a test keeps it true.
"""


def reference() -> str:
    """All commands with their arguments and options, as Markdown."""
    from feelgood.cli.commands import app

    group: Any = typer.main.get_command(app)
    return "\n".join([HEAD, *_commands(group, ("feelgood",))])


def _commands(group: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        words = (*path, name)
        if hasattr(command, "commands"):
            yield from _commands(command, words)
        else:
            yield _section(command, words)


def _section(command: Any, words: tuple[str, ...]) -> str:
    shown = [p for p in command.params if p.name != "help"]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option"]
    usage = [*words, *(_usage(a) for a in arguments), *(["[OPTIONS]"] if options else [])]
    lines = [f"## {' '.join(words)}", "", f"    {' '.join(usage)}", "", _one_line(command.help), ""]
    if command.epilog:
        lines += [f"`{command.epilog.removeprefix('Example: ')}`", ""]
    if shown:
        lines += ["| | |", "|---|---|"]
        lines += [f"| `{_usage(a)}` | {_one_line(a.help)} |" for a in arguments]
        lines += [f"| `{_flags(o)}` | {_one_line(o.help)}{_default(o)} |" for o in options]
        lines.append("")
    return "\n".join(lines)


def _usage(argument: Any) -> str:
    word = argument.metavar or argument.name.upper() + ("…" if argument.nargs == -1 else "")
    return word if argument.required else f"[{word}]"


def _flags(option: Any) -> str:
    names = ", ".join(option.opts)
    return names if option.is_flag else f"{names} {option.opts[0].lstrip('-').upper()}"


def _default(option: Any) -> str:
    value = option.default
    if value in (None, False, "") or callable(value):
        return ""
    return f" Default: {value}."


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
