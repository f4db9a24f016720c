"""Serve MLflow on loopback: `python serve.py PORT FOLDER`, with the Python that has `mlflow` installed.

The database is made in FOLDER when it is not there yet. Each request is appended to `FOLDER/requests.jsonl`. `POST /hooks/reset` brings the
database back to its start. `GET /hooks/state` returns experiments, runs and models as JSON.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2]).absolute()
START, LIVE = FOLDER / "start.db", FOLDER / "live.db"
EXPERIMENTS = {"yeild": (), "scratch": (), "greenhouse": (("elm", 0.91), ("oak", 0.84), ("broken", 0.12)), "orchard": (("plum", 0.77),)}
"""Experiments with the accuracy of each run."""
MODELS = ("rain-model", "old-model")
TIME = 1_700_000_000_000
"""When all began, in milliseconds since the epoch."""


def make() -> None:
    """Fill the database that a server begins with."""
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{START}")
    for name, runs in EXPERIMENTS.items():
        id = client.create_experiment(name, artifact_location=f"file://{FOLDER}/artifacts/{name}")
        for run_name, accuracy in runs:
            run = client.create_run(id, start_time=TIME, run_name=run_name, tags={"mlflow.user": "ann"})
            client.log_metric(run.info.run_id, "accuracy", accuracy, timestamp=TIME)
            client.log_param(run.info.run_id, "depth", 4)
            client.set_terminated(run.info.run_id, end_time=TIME + 60_000)
    for name in MODELS:
        client.create_registered_model(name)


def state() -> dict:
    """Return what the database holds."""
    from mlflow import MlflowClient
    from mlflow.entities import ViewType

    client = MlflowClient(f"sqlite:///{LIVE}")
    experiments = {
        each.name: sorted(run.info.run_name for run in client.search_runs([each.experiment_id], run_view_type=ViewType.ACTIVE_ONLY))
        for each in client.search_experiments(ViewType.ACTIVE_ONLY)
    }
    models = {each.name: {"description": each.description or "", "tags": dict(each.tags)} for each in client.search_registered_models()}
    return {"experiments": experiments, "models": models}


def reset() -> None:
    """Bring the database back to its start, also while connections to it are open."""
    with sqlite3.connect(START) as source, sqlite3.connect(LIVE) as target:
        source.backup(target)
    source.close()
    target.close()


class Served:
    """The application between a log of requests and the hooks."""

    def __init__(self, app) -> None:
        self.app = app

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        method, path = scope["method"], scope["path"]
        if path == "/hooks/reset" and method == "POST":
            await asyncio.to_thread(reset)
            return await self.send(send, b"reset", "text/plain")
        if path == "/hooks/state":
            return await self.send(send, json.dumps(await asyncio.to_thread(state)).encode(), "application/json")
        query = scope["query_string"].decode()
        with (FOLDER / "requests.jsonl").open("a") as file:
            file.write(json.dumps({"method": method, "path": path + ("?" + query if query else "")}) + "\n")
        return await self.app(scope, receive, send)

    @staticmethod
    async def send(send, body: bytes, kind: str) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]})
        await send({"type": "http.response.body", "body": body})


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.chdir(FOLDER)
    os.environ |= {
        "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{LIVE}",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": f"file://{FOLDER}/artifacts", "GIT_PYTHON_REFRESH": "quiet",
    }  # fmt: skip
    if not START.exists():
        make()
    shutil.copyfile(START, LIVE)
    import uvicorn
    from mlflow.server.fastapi_app import app

    uvicorn.run(Served(app), host="127.0.0.1", port=PORT, log_level="warning", lifespan="off")


if __name__ == "__main__":
    main()
