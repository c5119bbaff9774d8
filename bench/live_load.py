"""The service of `examples/service.py` under load, and a live bandit over very many rounds.

`latency.py` runs both. The clients are threads that write bytes to sockets and read the answers:
they take as little of the processor as they can, since they share it with the service.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

SERVICE = Path(__file__).resolve().parents[1] / "examples" / "service.py"
TOKEN, FEATURES = "a token of the benchmark", 4
#: Decisions after which a bandit remembers as many ended ones as it ever does.
FULL = 200_000


# ---- the service ------------------------------------------------------------------------------


def request(path: str, body: Any) -> bytes:
    """One request as bytes."""
    text = json.dumps(body)
    head = (
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {TOKEN}",
        "Content-Type: application/json",
        f"Content-Length: {len(text)}",
    )
    return ("\r\n".join(head) + "\r\n\r\n" + text).encode()


def answer(link: socket.socket) -> tuple[int, Any]:
    """The status and the content of one answer."""
    text = link.recv(65_536)
    while b"\r\n\r\n" not in text:
        text += link.recv(65_536)
    head, _, rest = text.partition(b"\r\n\r\n")
    (length,) = (
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(rest) < length:
        rest += link.recv(65_536)
    return int(head.split(b" ", 2)[1]), json.loads(rest)


class LoadingClient(threading.Thread):
    """Decides and rewards until it is told to stop."""

    def __init__(self, port: int, number: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        context = [float((number >> k) & 1) for k in range(FEATURES)]
        self.asked = request("/act", {"context": context})
        self.port, self.stop = port, stop
        #: Seconds of every request, decisions and rewards apart.
        self.acting: list[float] = []
        self.paying: list[float] = []
        self.wrong: list[Any] = []

    def say(self, link: socket.socket, text: bytes, seconds: list[float]) -> Any:
        start = time.perf_counter()
        link.sendall(text)
        code, told = answer(link)
        seconds.append(time.perf_counter() - start)
        if code != 200:
            self.wrong.append((code, told))
        return told

    def run(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.stop.is_set():
                made = self.say(link, self.asked, self.acting)
                paid = request("/reward", {"id": made["id"], "reward": 1.0})
                self.say(link, paid, self.paying)


def started(folder: str, fsync: str, cores: list[int]) -> tuple[subprocess.Popen[bytes], int]:
    """The service in a process of its own, and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [sys.executable, str(SERVICE), f"{folder}/journal", "--port", str(port)]
    if sys.platform == "linux":
        command = ["taskset", "-c", ",".join(map(str, cores)), *command]
    env = os.environ | {"FEELGOOD_TOKEN": TOKEN}
    process = subprocess.Popen([*command, "--fsync", fsync], env=env)
    end = time.monotonic() + 300
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process, port
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit("the service did not start.") from None
            time.sleep(0.05)


def served(fsync: str, clients: int, seconds: float, cores: list[int]) -> dict[str, float]:
    """Decisions per second with so many clients, and milliseconds of a request."""
    with tempfile.TemporaryDirectory() as folder:
        process, port = started(folder, fsync, cores)
        try:
            stop = threading.Event()
            loading = [LoadingClient(port, number, stop) for number in range(clients)]
            for one in loading:
                one.start()
            time.sleep(1.0)  # not counted
            before, start = sum(len(one.acting) for one in loading), time.perf_counter()
            time.sleep(seconds)
            after, end = sum(len(one.acting) for one in loading), time.perf_counter()
            stop.set()
            for one in loading:
                one.join(60)
        finally:
            process.terminate()
            process.wait(60)
    wrong = [said for one in loading for said in one.wrong]
    if wrong or process.returncode:
        raise SystemExit(f"the service answered {wrong[:1]}, exit code {process.returncode}.")
    acts = np.concatenate([one.acting for one in loading])
    pays = np.concatenate([one.paying for one in loading])
    return {
        "clients": clients,
        "decisions per second": round((after - before) / (end - start), 1),
        **{f"act ms p{p}": round(1e3 * float(np.percentile(acts, p)), 2) for p in (50, 99)},
        **{f"reward ms p{p}": round(1e3 * float(np.percentile(pays, p)), 2) for p in (50, 99)},
    }


# ---- very many rounds -------------------------------------------------------------------------


def mebibytes() -> float:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def long_run(agent: str, rounds: int, arms: int, features: int, rewards: str) -> dict[str, Any]:
    """Decisions and rewards of one bandit: memory and compilations as they go, microseconds."""
    import jax

    import feelgood

    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    bandit = feelgood.Bandit(agent, arms, features, seed=0, rewards=rewards)
    before, rng = len(compiled), np.random.default_rng(1)
    weights = rng.normal(size=(arms, features))
    parts = max(rounds // 20, 1)
    took = np.empty(rounds)
    marks: list[dict[str, float]] = []
    for i in range(rounds):
        x = rng.normal(size=features)
        luck = float(rng.normal())
        start = time.perf_counter()
        decision = bandit.act(x)
        middle = time.perf_counter()
        score = float(weights[decision.arm] @ x)
        reward = float(score + luck > 0.0) if rewards == "bernoulli" else score + luck
        again = time.perf_counter()
        bandit.update(decision.id, reward)
        took[i] = time.perf_counter() - again + middle - start
        if (i + 1) % parts == 0:
            now = {"rounds": i + 1, "MiB": round(mebibytes(), 1)}
            marks.append(now | {"compilations": len(compiled) - before})
    settled = [mark["MiB"] for mark in marks if mark["rounds"] >= min(FULL, rounds // 2)]
    assert bandit.version == rounds
    return {
        "rounds": rounds,
        "rewards": rewards,
        "compilations after the start": len(compiled) - before,
        "MiB at first and last": [settled[0], settled[-1]],
        **{f"p{p}": round(1e6 * float(np.percentile(took, p)), 2) for p in (50, 99)},
        "marks": marks,
    }
