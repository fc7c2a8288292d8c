"""The part of Kubernetes that Snakemake's executor asks for, on loopback: a job's container is a process.

A container's command runs in an empty folder, which is its volume `/workdir`, with the variables of the job's
secret and those that its image would have. It sees no other folder of the run.
"""

import base64
import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import yaml


@dataclass
class Cluster:
    """The jobs and secrets of a cluster; `image` has the variables of the container image."""

    folder: Path
    image: dict[str, str]
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The file that KUBECONFIG names."""
        return self.folder / "kubeconfig"

    def start(self, job: dict[str, Any]) -> None:
        """Run the container of a job."""
        name, (container,) = job["metadata"]["name"], job["spec"]["template"]["spec"]["containers"]
        variables = {}
        for variable in container["env"]:
            source = variable["valueFrom"]["secretKeyRef"]
            variables[variable["name"]] = base64.b64decode(
                self.secrets[source["name"]][source["key"]]
            ).decode()
        workdir = self.folder / "pods" / name
        workdir.mkdir(parents=True)
        with (self.folder / f"{name}.log").open("w") as log:
            self.pods[name] = subprocess.Popen(
                [*container["command"], *container["args"]],
                cwd=workdir,
                env=self.image | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )
        self.jobs[name] = job

    def evict(self, name: str) -> None:
        """Kill a pod, as a node does that is taken away."""
        os.killpg(self.pods[name].pid, signal.SIGKILL)

    def status(self, name: str) -> dict[str, int]:
        """Return the counts of a job's status."""
        ended = self.pods[name].poll()
        return {"active": 1} if ended is None else {"failed": 1} if ended else {"succeeded": 1}

    def pod(self, name: str) -> dict[str, Any]:
        """Return the pod of a job."""
        ended = self.pods[name].poll()
        state = {"running": {}} if ended is None else {"terminated": {"exitCode": ended}}
        container = {"name": "snakemake", "state": state, "image": "", "imageID": "", "ready": True}
        statuses = [container | {"restartCount": 0}]
        return {"metadata": {"name": name}, "status": {"containerStatuses": statuses}}


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Say nothing."""

        def _tell(self, content: Any) -> None:
            body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(200)
            kind = "text/plain" if isinstance(content, str) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/secrets"):
                cluster.secrets[body["metadata"]["name"]] = body["data"]
            else:
                cluster.start(body)
            self._tell(body)

        def do_GET(self) -> None:
            url = urlparse(self.path)
            *_, name, last = url.path.split("/")
            if last == "status":
                self._tell({"metadata": {"name": name}, "status": cluster.status(name)})
            elif last == "log":
                self._tell((cluster.folder / f"{name}.log").read_text())
            else:
                job = parse_qs(url.query)["labelSelector"][0].removeprefix("job-name=")
                self._tell({"items": [cluster.pod(job)] if job in cluster.pods else []})

        def do_DELETE(self) -> None:
            self._tell({})

    return Handler


@contextlib.contextmanager
def cluster(folder: Path, image: dict[str, str]) -> Iterator[Cluster]:
    """Serve a cluster on loopback; its pods are ended with it."""
    served = Cluster(folder, image)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = {"cluster": "here", "user": "me"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": names}],
        "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "me", "user": {}}],
    }
    served.config.write_text(yaml.safe_dump(config))
    try:
        yield served
    finally:
        server.shutdown()
        for name, pod in served.pods.items():
            if pod.poll() is None:
                served.evict(name)
            pod.wait()
