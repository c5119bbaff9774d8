"""A bandit behind HTTP, with a journal: a kill loses no reward that was acknowledged.

    FEELGOOD_TOKEN=secret python examples/service.py journal --port 8000

POST /act {"context": [...]} decides, POST /reward {"id": ..., "reward": ...} learns. Every request
needs the header `Authorization: Bearer secret`. SIGTERM and Ctrl-C stop it gracefully: requests
under way are answered, and the journal is closed.
"""

import argparse
import os
import secrets
import signal
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import Body, FastAPI
from fastapi.responses import JSONResponse

import feelgood

ARMS, FEATURES, MOST_BYTES = ["red", "green", "blue"], 4, 4_096


class Guard:  # lets nobody in without the token, and nothing that is too long
    def __init__(self, app: Any, token: str) -> None:
        self.app, self.expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer = self.app
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            length = headers.get(b"content-length", b"")
            if not secrets.compare_digest(headers.get(b"authorization", b""), self.expected):
                answer = JSONResponse({"detail": "give the token"}, 401)
            elif not length.isdigit() or int(length) > MOST_BYTES:
                answer = JSONResponse({"detail": f"send at most {MOST_BYTES} bytes"}, 413)
        await answer(scope, receive, send)


def service(bandit: feelgood.Bandit, token: str) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, token=token)

    @app.exception_handler(feelgood.FeelgoodError)
    async def refused(_: Any, error: Exception) -> JSONResponse:  # such as a second reward
        return JSONResponse({"detail": str(error)}, 409)

    @app.post("/act")
    async def act(context: Annotated[list[float], Body(embed=True)]) -> Any:
        decision = bandit.act(context)
        return {"id": str(decision.id), "arm": decision.arm, "version": decision.version}

    @app.post("/reward")
    async def reward(id: Annotated[int, Body()], reward: Annotated[float, Body()]) -> Any:
        bandit.update(id, reward)
        return {"version": bandit.version}

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("journal", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fsync", choices=["always", "batched"], default="always")
    parser.add_argument("--log", type=Path, help="for `feelgood evaluate` and `feelgood report`")
    asked = parser.parse_args()
    token = os.environ.get("FEELGOOD_TOKEN") or parser.error("set FEELGOOD_TOKEN to a secret.")
    files: dict[str, Any] = {"fsync": asked.fsync, "log": asked.log}
    if (asked.journal / "state.fg").exists():
        bandit = feelgood.Bandit.load(asked.journal, **files)
    else:
        bandit = feelgood.Bandit("lints", ARMS, FEATURES, journal=asked.journal, **files)
    limits: dict[str, Any] = {"limit_concurrency": 256, "timeout_graceful_shutdown": 10}
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what uvicorn leaves behind it
    with bandit:
        uvicorn.run(service(bandit, token), port=asked.port, log_level="warning", **limits)
