"""The example of a service: its process, and clients that load it."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SERVICE = Path(__file__).parents[1] / "examples" / "service.py"
TOKEN = "a token of the tests"
#: What a request that is cut off by a kill may raise.
CUT_OFF = (OSError, http.client.HTTPException)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def post(link: http.client.HTTPConnection, path: str, body: Any) -> tuple[int, dict[str, Any]]:
    """A request and its answer, over a connection that is kept."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    link.request("POST", path, json.dumps(body), headers)
    answer = link.getresponse()
    return answer.status, json.loads(answer.read())


class Served:
    """The service in a process of its own, on this machine alone."""

    def __init__(
        self,
        journal: Path,
        *options: str,
        command: tuple[str, ...] = (),
        python: str | Path = sys.executable,
    ) -> None:
        self.port = free_port()
        whole = [*command, str(python), str(SERVICE), str(journal), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*whole, *options], env=os.environ | {"FEELGOOD_TOKEN": TOKEN}
        )
        end = time.monotonic() + 300
        while True:
            try:
                with contextlib.closing(self.link()) as link:
                    assert post(link, "/nowhere", {})[0] == 404
                return
            except CUT_OFF:
                assert self.process.poll() is None and time.monotonic() < end, "it did not start"
                time.sleep(0.05)

    def link(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Client(threading.Thread):
    """Decides and rewards, again and again; what was cut off is said again to the next service."""

    def __init__(self, context: list[float], most: int) -> None:
        super().__init__(daemon=True)
        self.context, self.most = context, most
        self.served: Served | None = None
        self.link: http.client.HTTPConnection | None = None
        self.halt = threading.Event()
        #: Decisions and rewards that the service acknowledged, and what it said that was wrong.
        self.decided: list[int] = []
        self.rewarded: list[int] = []
        self.wrong: list[Any] = []
        self.seconds: list[float] = []

    def say(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        """A request, until it is answered; 0: it was told to halt."""
        while not self.halt.is_set():
            served = self.served
            try:
                if served is None:
                    raise OSError
                if self.link is not None and self.link.port != served.port:
                    self.hang_up()
                self.link = self.link or served.link()
                start = time.perf_counter()
                answer = post(self.link, path, body)
                self.seconds.append(time.perf_counter() - start)
                return answer
            except CUT_OFF:
                self.hang_up()
                time.sleep(0.02)
        return 0, {}

    def hang_up(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None

    def run(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self.hang_up)
            self.load()

    def load(self) -> None:
        while len(self.rewarded) < self.most and not self.halt.is_set():
            code, made = self.say("/act", {"context": self.context})
            if code == 200:
                own = int(made["id"])
                self.decided.append(own)
                self.pay(own)
            elif code:
                self.wrong.append((code, made))

    def pay(self, own: int) -> None:
        code, told = self.say("/reward", {"id": own, "reward": 1.0})
        # After a kill it may have been learned although nobody was told.
        if code == 200 or (code == 409 and "was rewarded before" in told["detail"]):
            self.rewarded.append(own)
        elif code:
            self.wrong.append((code, told))


@contextlib.contextmanager
def clients(count: int, most: int, features: int = 4) -> Iterator[list[Client]]:
    """So many clients with so many rounds each at most; they are halted at the end."""
    made = [Client([float((i >> k) & 1) for k in range(features)], most) for i in range(count)]
    for one in made:
        one.start()
    try:
        yield made
    finally:
        for one in made:
            one.halt.set()
        for one in made:
            one.join(60)
