"""The example of a service: its rules, and what it loses when it is killed under load: nothing."""

import asyncio
import importlib.util
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from serving import SERVICE, TOKEN, Client, Served, clients

import feelgood

CLIENTS = 32


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("service_example", SERVICE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(app: Any, path: str, body: bytes, **headers: str) -> tuple[int, Any]:
    """What the application says to one request, without a network."""
    given = {
        "content-length": str(len(body)),
        "content-type": "application/json",
        "authorization": f"Bearer {TOKEN}",
        **headers,
    }
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
    }
    asyncio.run(app(scope, receive, send))
    text = b"".join(message.get("body", b"") for message in said)
    return said[0]["status"], json.loads(text)


def test_the_example_is_short() -> None:
    assert len(SERVICE.read_text(encoding="utf-8").splitlines()) < 80


def test_it_decides_learns_and_refuses_in_one_sentence(example: Any) -> None:
    bandit = feelgood.Bandit("lints", example.ARMS, example.FEATURES)
    app = example.service(bandit, TOKEN)
    good = json.dumps({"context": [1.0, 0.0, 0.0, 0.5]}).encode()
    code, made = answer(app, "/act", good)
    assert code == 200 and made["arm"] in example.ARMS and made["version"] == 0
    paid = json.dumps({"id": made["id"], "reward": 1.5}).encode()
    assert answer(app, "/reward", paid) == (200, {"version": 1})
    code, said = answer(app, "/reward", paid)
    assert code == 409 and "was rewarded before" in said["detail"]
    for headers in ({"authorization": ""}, {"authorization": "Bearer guess"}):
        assert answer(app, "/act", good, **headers)[0] == 401
    for headers in ({"content-length": n} for n in ("", "5000", "-1")):
        assert answer(app, "/act", good, **headers)[0] == 413
    for body in (b"", b"{", b"[]", b'{"context": "x"}', b'{"context": [1, "x"]}'):
        assert answer(app, "/act", body)[0] == 422
    for body in (b'{"context": [1]}', b'{"context": [NaN, 0, 0, 0]}', b'{"context": []}'):
        code, said = answer(app, "/act", body)
        assert code == 409 and said["detail"].startswith("a context")
    for body in (b'{"id": 99, "reward": 1}', b'{"id": 0, "reward": Infinity}'):
        assert answer(app, "/reward", body)[0] == 409
    assert bandit.version == 1 and not bandit.waiting


def paid(loading: list[Client]) -> int:
    return sum(len(client.rewarded) for client in loading)


@pytest.mark.slow
@pytest.mark.parametrize("fsync", ["always", "batched"])
def test_nothing_acknowledged_is_lost_under_load(tmp_path: Path, fsync: str) -> None:
    """32 clients, 8 kills at random moments: every reward that was acknowledged was learned once.

    At most 200 rounds per client and a few minutes, on this machine alone.
    """
    rng, journal = random.Random(7), tmp_path / "journal"
    with clients(CLIENTS, most=200) as loading:
        for kills in range(9):
            with Served(journal, "--fsync", fsync) as served:  # and killed at the end
                for client in loading:
                    client.served = served
                wanted, end = paid(loading) + rng.randrange(20, 400), time.monotonic() + 60
                while paid(loading) < wanted:
                    assert time.monotonic() < end, [client.wrong for client in loading]
                    time.sleep(rng.uniform(0.0, 0.01))
                if kills == 8:
                    for client in loading:
                        client.most = 0  # the round under way is ended, and no other begins
                    for client in loading:
                        client.join(60)
                        assert not client.is_alive() and not client.wrong
                    assert served.stop() == 0
    decided = [own for client in loading for own in client.decided]
    rewarded = [own for client in loading for own in client.rewarded]
    with feelgood.Bandit.load(journal) as bandit:
        ledger = bandit._state.ledger
        lost = [own for own in rewarded if own not in ledger.ended]
        unknown = [own for own in decided if own not in ledger.ended and own not in ledger.waiting]
        assert len(rewarded) > 400 and not lost and not unknown
        assert bandit.version == len(set(rewarded)) == len(rewarded)


@pytest.mark.slow
def test_it_stops_gracefully_and_goes_on(tmp_path: Path) -> None:
    """SIGTERM under load: the exit code is 0, journal and log are free, whole and agree."""
    log = tmp_path / "log.arrow"
    options = ("--fsync", "batched", "--log", str(log))
    with Served(tmp_path / "journal", *options) as served, clients(4, most=20) as loading:
        for client in loading:
            client.served = served
        while not paid(loading):
            time.sleep(0.01)
        assert served.stop() == 0
    rewarded = [own for client in loading for own in client.rewarded]
    with feelgood.Bandit.load(tmp_path / "journal", log=log) as bandit:
        assert set(rewarded) <= set(bandit._state.ledger.ended)
    events = feelgood.read_log(log)
    assert not events.notes and len(events.table["reward"].drop_null()) == bandit.version
