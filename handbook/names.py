"""One public name as Markdown: how it is called, its docstring, its fields and methods."""

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

WIDTH = 88
#: Methods that readers call though they begin with an underscore: none is shown.
_FIELD_NOTE = re.compile(r"^\s*#: ?(.*)$")


def section(path: str, thing: Any, home: str) -> list[str]:
    """The section of one name; classes with what they have."""
    name = path.rsplit(".", 1)[1]
    lines = [f"## {name}", ""]
    if inspect.isclass(thing):
        lines += _fence(f"class {_call(name, _init_of(thing))}") if _init_of(thing) else []
        lines += [as_markdown(inspect.getdoc(thing) or ""), ""]
        lines += _fields(thing)
        for member, value in members(thing):
            lines += _member(name, member, value)
    elif inspect.isroutine(thing):
        lines += [*_fence(_call(name, thing)), as_markdown(inspect.getdoc(thing) or ""), ""]
    else:
        lines += [_value(home, name, thing), ""]
    return [*lines, f"`from {path.rsplit('.', 1)[0]} import {name}`", ""]


def as_markdown(docstring: str) -> str:
    """A docstring as Markdown: its examples become code."""
    out: list[str] = []
    example = False
    for line in docstring.splitlines():
        if not example and line.lstrip().startswith(">>>"):
            out, example = [*out, "```pycon"], True
        elif example and not line.strip():
            out, example = [*out, "```"], False
        out.append(line.strip() if example and line.startswith("    >>>") else line)
    return "\n".join([*out, "```"] if example else out)


def _fence(code: str) -> list[str]:
    return ["```python", code, "```", ""]


def _definition(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0]
    return node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _init_of(cls: type) -> Any:
    own = vars(cls).get("__init__")
    return own if own is not None and _definition(own) is not None else None


def _call(name: str, function: Any) -> str:
    """`name(arguments) -> result`, on one line or on several, as it stands in the source."""
    node = _definition(function)
    if node is None:
        return f"{name}{inspect.signature(function)}"
    head = node.args
    if head.args and head.args[0].arg in ("self", "cls"):
        head.args = head.args[1:]
    result = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    line = f"{name}({ast.unparse(head)}){result}"
    if len(line) <= WIDTH:
        return line
    pieces = ",\n".join(f"    {piece}" for piece in _pieces(ast.unparse(head)))
    return f"{name}(\n{pieces},\n){result}"


def _pieces(arguments: str) -> Iterator[str]:
    """Arguments cut at the commas outside all brackets and quotes."""
    depth, quoted, piece = 0, "", ""
    for sign in arguments:
        if sign in "'\"" and quoted in ("", sign):
            quoted = "" if quoted else sign
        elif not quoted:
            depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth and not quoted:
            yield piece.strip()
            piece = ""
        else:
            piece += sign
    if piece.strip():
        yield piece.strip()


def members(cls: type) -> Iterator[tuple[str, Any]]:
    for member, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        shown = isinstance(value, property) or inspect.isfunction(function)
        if shown and not member.startswith("_"):
            yield member, value


def _member(owner: str, member: str, value: Any) -> list[str]:
    lines = [f"### {owner}.{member}", ""]
    if isinstance(value, property):
        return [*lines, as_markdown(inspect.getdoc(value) or ""), ""]
    function = getattr(value, "__func__", value)
    return [*lines, *_fence(_call(member, function)), as_markdown(inspect.getdoc(value) or ""), ""]


def _fields(cls: type) -> list[str]:
    """The fields of a class as a table, with the notes that stand beside them in the source."""
    if issubclass(cls, enum.Enum):
        return ["| | |", "|---|---|", *(f"| `{m.name}` | {m.value} |" for m in cls), ""]
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return []
    lines, rows = source.splitlines(), []
    node = ast.parse(source).body[0]
    for field in node.body if isinstance(node, ast.ClassDef) else ():
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        kind = ast.unparse(field.annotation)
        if field.target.id.startswith("_") or "ClassVar" in kind:
            continue
        note = " ".join(reversed(list(_notes_above(lines, field.lineno - 1))))
        rows.append(f"| `{field.target.id}` | `{kind}` | {note} |".replace("‖", "&#8214;"))
    return ["| field | type | |", "|---|---|---|", *rows, ""] if rows else []


def _notes_above(lines: list[str], at: int) -> Iterator[str]:
    while at > 0 and (note := _FIELD_NOTE.match(lines[at - 1])):
        yield note[1].replace("|", "\\|")
        at -= 1


def _value(home: str, name: str, thing: Any) -> str:
    """What a value is: what is written of its kind, or how a type is put together."""
    kind = type(thing)
    if not kind.__module__.startswith("feelgood"):
        return "\n".join(_assignment(home, name))
    methods = [m for m, v in vars(kind).items() if not m.startswith("_") and inspect.isfunction(v)]
    names = ", ".join(f"`{name}.{m}`" for m in methods)
    text = as_markdown(inspect.getdoc(kind) or "")
    return f"A `{kind.__name__}` of `{home}`. {text}\n\nIt has {names}."


def _assignment(home: str, name: str) -> list[str]:
    """The line that gives a value its name, and the notes above it."""
    source = inspect.getsource(importlib.import_module(home))
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            notes = list(_notes_above(source.splitlines(), node.lineno - 1))
            return [*_fence(ast.unparse(node)), " ".join(reversed(notes))]
    return []
