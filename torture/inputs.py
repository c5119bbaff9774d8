"""Malformed input: command lines, study files, settings, tables and plug-ins, all refused.

Each is one sentence on standard error and exit code 2, or the usage of the command; nothing runs.
Inputs that are changed at random may also happen to be right.
"""

import dataclasses
import functools
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torture.arena import SMALL, Attack, Done, Reference, check, forked, started

#: Seconds of the processor within which a mistake must be found, wherever it is.
PROMPT = 10.0
RUN = ("run", "linear-20", "lints", "--rounds", "20", "--seeds", "1")


@dataclasses.dataclass(frozen=True)
class Case:
    """A command line, and the files it is about."""

    name: str
    words: tuple[str, ...]
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)
    #: Whether it may also be right.
    perhaps: bool = False


def attacks(reference: Reference, short: bool) -> Sequence[Attack]:
    """All cases in forks, some also as real processes."""
    small = reference.small
    cases = [*_lines(), *_settings(), *_studies(), *_tables(), *_plugins(), *_mutated()]
    if short:
        cases = cases[::12]
    out = [Attack("inputs", c.name, functools.partial(_refused, small, c, forked)) for c in cases]
    if not short:
        out += [
            Attack("inputs", f"real, {c.name}", functools.partial(_refused, small, c, started))
            for c in cases[::25]
        ]
    return out


def _refused(
    store: Path, case: Case, start: Callable[..., Done], folder: Path, luck: random.Random
) -> int:
    shutil.copytree(store, folder / "store")
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    done = start(*case.words, cwd=folder)
    said = done.out + done.err
    check("Traceback" not in said and "Error:" not in done.out, "a traceback", case.name, done)
    if case.perhaps and done.code == 0:
        return 1
    check(done.code == 2, "not refused", case.name, done)
    usage = "Usage:" in said or "─ Error ─" in done.err
    lines = done.err.splitlines()
    if not usage:
        check(len(done.sentences) == 1, "not one sentence", case.name, done)
        check(lines[-1].startswith("feelgood:"), "more after the sentence", case.name, done)
        check(len(done.sentences[0]) < 1500, "a sentence without end", case.name, done)
    check("pickle" not in said, "advice to load pickles", case.name, done)
    check(done.work < PROMPT, "slow", f"{done.work:.0f} s", case.name, done)
    check(not (folder / "o").exists() or not list((folder / "o").iterdir()), "wrote", case.name)
    return 1


# ---- command lines --------------------------------------------------------------------------

ODD_TEXTS = (
    *("", " ", "-", "--", ".", "..", "/", "\\", "*", "?", "[", "]", "[a", "%s", "{}", "$HOME"),
    *("é", "ｌｉｎｅａｒ-20", "linear-20\u200b", "LINEAR_20", "linear-\u0662\u0660", "\U0001f600"),
    *("linear--20", "linear-", "linear-0", "linear-7", "linear-1e3", "linear-20.5", "linear-nan"),
    *("linear-99999999999999999999", "wheel-2", "wheel--1", "wheel-", "wheel-inf", "logistic-0"),
    *("nope.csv", "a" * 5000, "\udcff", "[red]x[/red]", "\x1b[31mx", "a\nb", "__class__"),
)
BAD_NUMBERS = (
    *("", " ", "0", "-1", "-0", "1.5", "nan", "inf", "-inf", "1e99", "1e400", "x", "0x10", "1_0"),
    *("１０", "1,5", "10 000", "k", "1kk", "9" * 30, "9" * 5000, "1e-3", "null", "true", "[1]"),
)
BAD_SEEDS = (
    *("", "0", "-1", "5:2", "5:5", ":", "1:", ":1", "1:2:3", "a:b", "1,1", "1,,2", ",", "1.5"),
    *("nan", "1e3:", "-5:5", "9" * 30, "0:9" + "9" * 20, "1;2", "[1,2]", "\u0661"),
)
BAD_PAIRS = (
    *("", "=", ".=", "a", "a=", "lints", "lints.", "lints.eta", "lints.eta=", ".eta=1", "eta=1"),
    *("lints..eta=1", "lints.eta=nan", "lints.eta=inf", "lints.eta=-1", "lints.eta=x"),
    *("lints.eta=1,x", "lints.eta={}", "lints.eta=null", "lints.eta=[[1]]", "lints.eta=1e400"),
    *("lints.ETA=1", "lints.é=1", "linucb.alpha=1", "testbed.nope=1", "testbed.noise=x"),
    *(
        "testbed.noise=-1",
        "linear-40.noise=1",
        "lints.eta=" + "9" * 5000,
        "lints.eta=" + "[" * 3000,
    ),
    *("lints.eta=True", "lints.__class__=1"),
)
OTHERS: tuple[tuple[str, ...], ...] = (
    ("nope",),
    ("--nope",),
    ("run",),
    ("run", "--help=1"),
    ("run", "linear-20"),
    ("run", "lints"),
    ("run", "lints", "lints"),
    (*RUN, "--nope"),
    (*RUN, "--plugin", ""),
    (*RUN, "--plugin", "."),
    (*RUN, "--plugin", ".py"),
    (*RUN, "--plugin", "nope.py"),
    (*RUN, "--plugin", "no.such.module"),
    (*RUN, "--plugin", "..relative"),
    (*RUN, "--plugin", "x" * 300 + ".py"),
    (*RUN, "--preset", "nope"),
    (*RUN, "--label", "y"),
    (*RUN, "--rewards", "a,b"),
    (*RUN, "--out", "/dev/null"),
    (*RUN, "--out", "/proc/x"),
    (*RUN, "--json", "store"),
    (*RUN, "--json", "/proc/x.json"),
    (*RUN, "--page", "store"),
    (*RUN, "--out", "x" * 300),
    ("list", "nope"),
    ("list", "agents", "nope"),
    ("list", ""),
    ("challenge", "nope"),
    ("challenge", "nope.py"),
    ("challenge", "lints", "--testbed", "nope"),
    ("challenge", "lints", "--seeds", "0"),
    ("challenge", "lints", "--seeds", "-3"),
    ("challenge", "lints", "--seeds", "x"),
    ("challenge", "lints", "--agent", "nope"),
    ("data", "fetch", "nope"),
    ("data", "path", "nope"),
    ("data", "verify", "nope"),
    ("data", "path", "mushroom"),
    ("data",),
    ("posterior", "nope"),
    ("posterior", "uniform"),
    ("posterior", "lints", "--testbed", "nope"),
    ("posterior", "lints", "--draws", "1" + "0" * 12),
    ("posterior", "lints", "--draws", "0"),
    ("posterior", "lints", "--draws", "-5"),
    ("posterior", "lints", "--steps", "0"),
    ("posterior", "lints", "--chains", "0"),
    ("posterior", "lints", "--chains", "1" + "0" * 12),
    ("posterior", "lints", "--burn", "-1"),
    ("posterior", "lints", "--burn", "1" + "0" * 15),
    ("posterior", "lints", "--rounds", "0"),
    ("posterior", "lints", "--rounds", "x"),
    ("posterior", "lints", "--seeds", "x"),
    ("posterior", "lints", "--gatherer", "nope"),
    ("posterior", "lints", "--set", "lints.eta=nan"),
    ("posterior", "lints", "--set", "x"),
    ("posterior", "lints", "--figure", "x.bmp"),
    ("posterior", "lints", "--out", "/proc/x"),
    ("calibrate",),
    ("calibrate", "nope"),
    ("calibrate", "uniform"),
    ("calibrate", "lints", "--simulations", "0"),
    ("calibrate", "lints", "--simulations", "1" + "0" * 12),
    ("calibrate", "lints", "--rounds", "0"),
    ("calibrate", "lints", "--rounds", "x"),
    ("calibrate", "lints", "--thin", "0"),
    ("calibrate", "lints", "--precision", "nan"),
    ("calibrate", "lints", "--precision", "0"),
    ("calibrate", "lints", "--precision", "-1"),
    ("calibrate", "lints", "--testbed", "nope"),
    ("report",),
    ("report", "nope"),
    ("report", "s.toml"),
    ("report", "/dev/null"),
    ("report", "x" * 300),
    ("report", "store", "--out", "store"),
    ("report", "store", "--out", "/proc/x.html"),
    ("report", "store", "--out", "store/manifest.jsonl"),
    ("report", "store", "--posterior", "nope"),
    ("report", "store", "--posterior", "store"),
    ("report", "store", "--plugin", "nope.py"),
    ("plot", "store"),
    ("plot", "nope", "--out", "x.svg"),
    ("plot", "store", "--out", "x"),
    ("plot", "store", "--out", "x.bmp"),
    ("plot", "store", "--out", ".svg"),
    ("plot", "store", "--out", "x.svg", "--chart", "nope"),
    ("plot", "store", "--out", "x.svg", "--chart", "draws"),
    ("plot", "store", "--out", "x.svg", "--chart", "health"),
    ("plot", "store", "--out", "x.svg", "--chart", "posterior"),
    ("plot", "store", "--out", "x.svg", "--chart", "posterior-regret"),
    ("plot", "store", "--out", "x.svg", "--chart", "health", "--measure", "nope"),
    ("plot", "store", "--out", "x.svg", "--theme", "nope"),
    ("plot", "store", "--out", "x.svg", "--band", "nope"),
    ("plot", "store", "--out", "x.svg", "--cost", "nope"),
    ("plot", "store", "--out", "x.svg", "--agents", "nope"),
    ("plot", "store", "--out", "x.svg", "--testbed", "nope"),
    ("study",),
    ("study", "run"),
    ("study", "run", "nope.toml"),
    ("study", "run", "store"),
    ("study", "show", "nope.toml"),
    ("study", "show", "x" * 300),
    ("study", "export", "good.toml", "--format", "nope"),
    ("study", "export", "good.toml", "--out", "store"),
    ("study", "export", "good.toml", "--store", "nope"),
    ("study", "export", "good.toml", "--store", "good.toml"),
    ("study", "show", "good.toml", "--store", "good.toml"),
    ("study", "run", "good.toml", "--store", "/proc/x"),
    ("study", "run", "good.toml", "--store", "good.toml"),
    ("study", "run", "good.toml", "--store", "x" * 300),
    ("study", "run", "good.toml", "--store", "new", "--engine", "nope"),
    ("study", "run", "good.toml", "--store", "new", "--engine", ""),
    ("study", "run", "good.toml", "--store", "new", "--workers", "0"),
    ("study", "run", "good.toml", "--store", "new", "--workers", "-1"),
    ("study", "run", "good.toml", "--store", "new", "--workers", "x"),
    ("study", "run", "good.toml", "--store", "new", "--engine", "ray", "--workers", "-1"),
    ("study", "run", "good.toml", "--store", "new", "--engine", "ray", "--workers", "0"),
    ("study", "run", "good.toml", "--store", "new", "--address", "x"),
    ("study", "run", "good.toml", "--store", "new", "--checkpoint-every", "-1"),
    ("study", "run", "good.toml", "--store", "new", "--checkpoint-every", "nan"),
    ("study", "run", "good.toml", "--store", "new", "--posterior-every", "0"),
    ("study", "run", "good.toml", "--store", "new", "--posterior-every", "-1"),
    ("study", "show", "good.toml", "--posterior-every", "0"),
    ("reproduce", "nope"),
    ("reproduce", "main", "--testbed", "nope"),
    ("reproduce", "main", "--agents", "nope"),
    ("reproduce", "main", "--seeds", "x"),
    ("reproduce", "main", "--rounds", "0"),
)


def _lines() -> Iterator[Case]:
    good = {"good.toml": SMALL.encode(), "s.toml": b"x"}
    for words in OTHERS:
        yield Case(f"line {' '.join(words)[:80]!r}", words, good)
    for text in ODD_TEXTS:
        yield Case(f"testbed {text[:40]!r}", ("run", text, *RUN[2:]))
        yield Case(
            f"agent {text[:40]!r}", ("run", "linear-20", text, *RUN[3:]), perhaps=text == "--"
        )
    for value in BAD_NUMBERS:
        yield Case(
            f"rounds {value[:40]!r}",
            ("run", "linear-20", "lints", "--rounds", value),
            perhaps=value in ("1_0", "１０"),
        )
        yield Case(
            f"posterior-every {value[:40]!r}",
            (*RUN, "--posterior-every", value),
            perhaps=value in ("1_0", "１０"),
        )
    for value in BAD_SEEDS:
        yield Case(
            f"seeds {value[:40]!r}",
            ("run", "linear-20", "lints", "--seeds", value),
            perhaps=value == "\u0661",
        )


def _settings() -> Iterator[Case]:
    for pair in BAD_PAIRS:
        yield Case(f"--set {pair[:40]!r}", (*RUN, "--set", pair))
    from feelgood.core.policy import AGENTS

    values = ("nan", "-1e400", "{}", "null", '"\u2028"', "[]")
    pairs = [(name, key) for name in AGENTS.names() for key in AGENTS[name].settings]
    for i, (agent, key) in enumerate(pairs):
        value = values[i % len(values)]
        words = ("run", "linear-20", agent, *RUN[3:], "--set", f"{agent}.{key}={value}")
        if i % 4 == 0:
            yield Case(f"--set {agent}.{key}={value}", words)


# ---- study files ----------------------------------------------------------------------------

BASE = {
    "rounds": "60",
    "seeds": "3",
    "testbeds": '["linear-20"]',
    "agents": '["uniform"]',
}
VALUES = {
    "name": (
        "1",
        "true",
        "[]",
        "{}",
        '""',
        '"a/b"',
        '"../x"',
        '"a\\u0000b"',
        '"é"',
        f'"{"x" * 200}"',
    ),
    "store": (
        "1",
        "[]",
        '""',
        '" "',
        '"../x"',
        '"/tmp/x"',
        '"a\\u0000"',
        '"."' + "x",
        f'"{"x" * 300}"',
    ),
    "rounds": (
        "0",
        "-1",
        "1.5",
        "true",
        '"x"',
        "[]",
        "{}",
        "nan",
        "inf",
        "9223372036854775808",
        "9" * 4400,
        "1e400",
        "1979-05-27",
        "100000001",
    ),
    "seeds": (
        "0",
        "-1",
        "1.5",
        "true",
        '"x"',
        '"5:2"',
        "[]",
        "[1, 1]",
        "[-1]",
        "[1.5]",
        '["a"]',
        "{}",
        "nan",
        "9" * 4400,
        "9223372036854775807",
        '"0:9999999999999"',
        "[[1]]",
    ),
    "preset": ("1", '"nope"', "[]", '""', "true"),
    "posterior_every": ("0", "-1", "1.5", '"x"', "true", "[]", "9223372036854775807"),
    "plugins": (
        "1",
        '"x"',
        "[1]",
        '["nope.py"]',
        '["../x.py"]',
        '["/etc/x.py"]',
        '["no.such"]',
        '[""]',
        '["a\\u0000.py"]',
        '["."]',
        '["good.toml"]',
    ),
    "table": ("1", '"nope"', "[]", '[""]', "true", "{}", '["main", "main"]', '["nope", "main"]'),
    "testbeds": (
        "1",
        '"x"',
        "[]",
        "{}",
        "[1]",
        '["nope"]',
        '["linear-20", "linear-20"]',
        '["linear-20", 1]',
        '{"linear-20" = 1}',
        '{"linear-20" = {noise = [1, 2]}}',
        '{"linear-20" = {nope = 1}}',
        '{"linear-20" = {noise = "x"}}',
        '{"linear-20" = {noise = nan}}',
        '[""]',
        '["linear-99999999999999999999"]',
    ),
    "agents": (
        "1",
        '"x"',
        "[]",
        "{}",
        "[1]",
        '["nope"]',
        '["uniform", "uniform"]',
        "{uniform = 1}",
        "{uniform = {nope = 1}}",
        "{linucb = {alpha = nan}}",
        "{linucb = {alpha = []}}",
        "{linucb = {alpha = [1, 1]}}",
        '{linucb = {alpha = "x"}}',
        "{linucb = {alpha = {}}}",
        "{linucb = {alpha = [[1]]}}",
        "{linucb = {alpha = true}}",
        "{linucb = {alpha = 1979-05-27}}",
        "{linucb = {preset = 1}}",
        "{linucb = []}",
        '{linucb = {preset = "nope"}}',
        "{linucb = {alpha = -1}}",
        "{linucb = [1]}",
    ),
    "nope": ("1",),
    "Rounds": ("1",),
    '"rounds "': ("1",),
    '""': ("1",),
}


def _study(**changes: str) -> bytes:
    return "".join(f"{key} = {value}\n" for key, value in {**BASE, **changes}.items()).encode()


def _studies() -> Iterator[Case]:
    show = ("study", "show", "bad.toml", "--store", "store")
    for key, values in VALUES.items():
        for value in values:
            fine = (key, value) in {
                ("plugins", "x"),
                ("agents", "{linucb = {alpha = [1, 1]}}"),
                ("posterior_every", "9223372036854775807"),
                ("name", '"é"'),
                ("store", f'"{"x" * 300}"'),
                ("table", '["main", "main"]'),
            }
            yield Case(
                f"study {key} = {value[:40]}", show, {"bad.toml": _study(**{key: value})}, fine
            )
    good = _study()
    texts: dict[str, bytes] = {
        "empty": b"",
        "blank": b"\n\n",
        "NUL": b"\0",
        "NUL inside": good + b'name = "a\0"\n',
        "BOM": b"\xef\xbb\xbf" + good,
        "UTF-16": good.decode().encode("utf-16"),
        "Latin-1": good + "# é\n".encode("latin-1"),
        "lone surrogate": good + b"# \xed\xa0\x80\n",
        "key twice": good + b"rounds = 5\n",
        "table twice": good + b"[x]\n[x]\n",
        "deep list": good + b"name = " + b"[" * 5000 + b"]" * 5000,
        "deep table": good + b"a" + b".a" * 5000 + b" = 1\n",
        "deep inline": good + b"x = " + b"{a=" * 3000 + b"1" + b"}" * 3000,
        "open string": good + b'name = "x\n',
        "open list": good + b"plugins = [\n",
        "no value": good + b"name =\n",
        "no key": good + b"= 1\n",
        "binary": bytes(range(256)),
        "PNG": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "a page": b"<html><body>hello</body></html>",
        "JSON": b'{"rounds": 1}',
        "YAML": b"rounds: 1\nseeds: 2\n",
        "too large": good + b"#" * 1_000_001,
        "huge list of seeds": _study(seeds="[" + "1," * 200_000 + "]"),
        "huge list of agents": _study(agents="[" + '"uniform",' * 20_000 + "]"),
        "huge sweep": good.replace(b'agents = ["uniform"]\n', b"")
        + b"[agents.linucb]\nalpha = ["
        + b",".join(b"%d" % i for i in range(100_000))
        + b"]\n",
        "wide file": good + b"".join(b"k%d = 1\n" % i for i in range(20_000)),
        "odd escapes": good + b'name = "\\q"\n',
        "date": good + b"name = 2020-02-30\n",
        "huge float": good + b"posterior_every = 1e999\n",
        "hex": good + b"posterior_every = 0xFFFFFFFFFFFFFFFFFF\n",
        "agents as list of tables": good.replace(b'agents = ["uniform"]\n', b"[[agents]]\nx = 1\n"),
        "testbeds deeper": good.replace(
            b'testbeds = ["linear-20"]\n', b"[testbeds.linear-20.x.y]\n"
        ),
    }
    for name, text in texts.items():
        perhaps = name in ("huge sweep", "BOM")
        yield Case(f"study file: {name}", show, {"bad.toml": text}, perhaps)


def _mutated() -> Iterator[Case]:
    """Sound files with some bytes changed."""
    luck = random.Random(5)
    table = "a,b,y\n" + "".join(f"{i},{i % 7},{'uv'[i % 2]}\n" for i in range(40))
    for i in range(60):
        content = bytearray(_study() + b'[more]\nx = "y"\n'[: luck.choice((0, 15))])
        for _ in range(luck.randint(1, 3)):
            at = luck.randrange(len(content))
            change = luck.choice(("set", "drop", "copy"))
            if change == "set":
                content[at] = luck.randrange(256)
            elif change == "drop":
                del content[at : at + luck.randint(1, 9)]
            else:
                content[at:at] = content[at : at + luck.randint(1, 40)]
        words: tuple[str, ...] = ("study", "show", "bad.toml", "--store", "store")
        yield Case(f"study file changed at random, {i}", words, {"bad.toml": bytes(content)}, True)
    for i in range(20):
        raw = bytearray(table.encode())
        for _ in range(luck.randint(1, 4)):
            raw[luck.randrange(len(raw))] = luck.randrange(256)
        words = ("run", "t.csv", "uniform", "--label", "y", "--rounds", "5", "--seeds", "1")
        yield Case(f"table changed at random, {i}", words, {"t.csv": bytes(raw)}, True)


# ---- tables ---------------------------------------------------------------------------------


def _tables() -> Iterator[Case]:
    words: tuple[str, ...] = ("run", "t.csv", "uniform", "--label", "y")
    words += ("--rounds", "5", "--seeds", "1")
    rows = b"a,y\n" + b"".join(b"%d,%s\n" % (i, b"uv"[i % 2 : i % 2 + 1]) for i in range(20))
    texts: dict[str, tuple[bytes, bool]] = {
        "empty": (b"", False),
        "blank": (b"\n \n", False),
        "header only": (b"a,y\n", False),
        "no such label": (b"a,z\n1,2\n", False),
        "label only": (b"y\n1\n2\n", False),
        "ragged": (rows + b"1,2,3\n", False),
        "short row": (rows + b"1\n", False),
        "binary": (bytes(range(256)) * 4, False),
        "NUL": (rows + b"1\0,u\n", False),
        "Latin-1": (rows + "é,u\n".encode("latin-1"), False),
        "UTF-16": (rows.decode().encode("utf-16"), True),
        "UTF-32": (rows.decode().encode("utf-32"), True),
        "BOM": (b"\xef\xbb\xbf" + rows, True),
        "open quote": (rows + b'"1,u\n', True),
        "quotes": (rows + b'"1"x,"u"\n', True),
        "two names alike": (b"a,a,y\n1,2,u\n2,1,v\n", False),
        "label twice": (b"y,y\nu,v\nv,u\n", False),
        "no name": (b",y\n1,u\n2,v\n", True),
        "one class": (b"a,y\n1,u\n2,u\n", False),
        "a class per row": (b"a,y\n" + b"".join(b"%d,%d\n" % (i, i) for i in range(3000)), True),
        "no label known": (b"a,y\n1,\n2,\n", False),
        "one row": (b"a,y\n1,u\n", False),
        "constant feature": (b"a,y\n1,u\n1,v\n", True),
        "infinite": (b"a,y\ninf,u\n1,v\n", False),
        "too large": (b"a,y\n1e39,u\n1,v\n", False),
        "huge number": (b"a,y\n" + b"9" * 400 + b",u\n1,v\n", True),
        "10,000 columns": (
            b",".join(b"c%d" % i for i in range(9999))
            + b",y\n"
            + b"".join(b"1," * 9999 + c + b"\n" for c in (b"u", b"v")),
            True,
        ),
        "long line": (b"a,y\n" + b"x" * 3_000_000 + b",u\n1,v\n", True),
        "long field": (b"a" * 100_000 + b",y\n1,u\n2,v\n", True),
        "odd names": ("a\u202eb,y\n1,u\n2,v\n".encode(), True),
        "markup": (b"[red]a[/red],y\n1,[bold]\n2,[/x]\n", True),
        "line ends of old": (rows.replace(b"\n", b"\r"), True),
        "only commas": (b",,,\n,,,\n", False),
        "semicolons": (rows.replace(b",", b";"), True),
        "a page": (b"<html>\n<body>\n", False),
        "JSON": (b'{"a": [1, 2]}\n', False),
        "a Parquet": (b"PAR1" + bytes(40) + b"PAR1", False),
        "a zip": (b"PK\x03\x04" + bytes(40), False),
    }
    for name, (content, perhaps) in texts.items():
        yield Case(f"table: {name}", words, {"t.csv": content}, perhaps)
    for name, content in {
        "empty": b"",
        "text": rows,
        "magic only": b"PAR1PAR1",
        "huge footer": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
        "zeros": bytes(500),
    }.items():
        yield Case(f"Parquet: {name}", ("run", "t.parquet", *words[2:]), {"t.parquet": content})
    for options in (
        ("--label", "nope"),
        ("--label", ""),
        ("--rewards", "a,nope"),
        ("--rewards", ""),
        ("--rewards", "a,a"),
        ("--rewards", "y,a"),
        ("--label", "y", "--rewards", "a"),
        (),
    ):
        yield Case(
            f"table options {options}",
            ("run", "t.csv", "uniform", *options),
            {"t.csv": rows},
            perhaps=False,
        )
    yield Case(
        "two tables of one name",
        ("run", "t.csv", "x/t.csv", *words[2:]),
        {"t.csv": rows, "x/t.csv": rows},
    )
    yield Case("a folder as a table", ("run", "d.csv", *words[2:]), {"d.csv/x": b""})


# ---- plug-ins -------------------------------------------------------------------------------

HEAD = "from feelgood.agents import Uniform\nfrom feelgood import AGENTS, TESTBEDS\n"
AGENT = '@AGENTS.register("{name}")\nclass A{i}(Uniform):\n    """One."""\n'


def _plugins() -> Iterator[Case]:
    texts: dict[str, tuple[str | bytes, bool]] = {
        "syntax error": ("def f(:\n", False),
        "indentation": ("  x = 1\n y = 2\n", False),
        "raises": ("raise RuntimeError('no')\n", False),
        "raises without a word": ("raise RuntimeError\n", False),
        "raises many lines": ("raise RuntimeError('a\\nb\\nc')\n", False),
        "raises what has no text": (
            "class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E\n",
            False,
        ),
        "sys.exit": ("import sys; sys.exit()\n", False),
        "sys.exit 0": ("import sys; sys.exit(0)\n", False),
        "sys.exit text": ("import sys; sys.exit('bye')\n", False),
        "SystemExit": ("raise SystemExit(3)\n", False),
        "GeneratorExit": ("raise GeneratorExit\n", False),
        "recursion": ("def f(): f()\nf()\n", False),
        "imports nothing": ("import no_such_module_at_all\n", False),
        "memory": ("raise MemoryError\n", False),
        "empty": ("", True),
        "NUL": (b"x = 1\0\n", False),
        "Latin-1": ("# é\nx = 'é'\n".encode("latin-1"), False),
        "odd coding": ("# -*- coding: nope -*-\n", False),
        "binary": (bytes(range(256)), False),
        "registers nothing": (HEAD, True),
        "registers no class": (HEAD + "AGENTS.register('x')(3)\n", False),
        "registers a known name": (HEAD + AGENT.format(name="lints", i=0), False),
        "registers twice": (
            HEAD + AGENT.format(name="mine", i=0) + AGENT.format(name="mine", i=1),
            False,
        ),
        "odd name": (HEAD + AGENT.format(name="a b\\n", i=0), False),
        "empty name": (HEAD + AGENT.format(name="", i=0), False),
        "number as a name": (
            HEAD + "@AGENTS.register(3)\nclass A(Uniform):\n    '''One.'''\n",
            False,
        ),
    }
    for name, (text, perhaps) in texts.items():
        content = text if isinstance(text, bytes) else text.encode()
        yield Case(f"plug-in: {name}", (*RUN, "--plugin", "mine.py"), {"mine.py": content}, perhaps)
    study = _study(plugins='["mine.py"]')
    for name in ("raises", "raises without a word", "sys.exit", "syntax error", "SystemExit"):
        content = str(texts[name][0]).encode()
        files: dict[str, Any] = {"mine.py": content, "bad.toml": study}
        yield Case(f"plug-in of a study: {name}", ("study", "show", "bad.toml"), files)
        yield Case(f"plug-in of a challenge: {name}", ("challenge", "mine.py"), files)
    yield Case("a plug-in that registers no agent", ("challenge", "mine.py"), {"mine.py": b""})
    two = HEAD + AGENT.format(name="one", i=0) + AGENT.format(name="two", i=1)
    yield Case("a plug-in with two agents", ("challenge", "mine.py"), {"mine.py": two.encode()})
    for name in ("types", "random", "json", "numpy", "jax", "feelgood"):
        yield Case(
            f"a plug-in named {name}",
            ("run", "linear-20", "nope", "--plugin", f"{name}.py"),
            {f"{name}.py": (HEAD + AGENT.format(name="mine", i=0)).encode()},
        )
