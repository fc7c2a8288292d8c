"""A Hub on the loopback, for the real huggingface_hub client: it keeps what is uploaded, as the Hub would.

It speaks what an upload needs (huggingface_hub 1.33): create a repository, sort files into text and large
ones, take large ones by Git LFS, and commit. Xet's storage, which the Hub prefers, has a protocol of its
own that changes with hf_xet; here it is only met failing.
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "c" * 40


@dataclass
class Hub:
    """What a server has been told. `fails`: part of a path -> the status that is answered in its place."""

    address: str = ""
    token: str = "hf_the_right_one"
    fails: dict[str, int] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # method and path of each request
    stored: dict[str, bytes] = field(default_factory=dict)  # sha256 -> a large file sent by LFS
    commits: list[dict[str, Any]] = field(default_factory=list)  # path -> bytes, or the sha256 of a large one

    def environment(self, xet: bool = False) -> dict[str, str]:
        """What the client reads to be here, and nowhere else."""
        return {
            "HF_ENDPOINT": self.address,
            "HF_TOKEN": self.token,
            "HF_HUB_DISABLE_XET": str(int(not xet)),
            "HF_HUB_OFFLINE": "0",
        }


@contextmanager
def serving() -> Iterator[Hub]:
    """A Hub at a free port of this machine, until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: hub.asked has it."""

        def answer(self) -> None:
            body = self._body()
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            status = next((code for part, code in hub.fails.items() if part in path), 200)
            signed = path.startswith("/lfs/put/")  # whoever has such an address may write to it
            if not signed and self.headers.get("Authorization") != f"Bearer {hub.token}":
                status = 401
            found = _found(hub, path, body) if status == 200 else {"error": "no"}
            self._send(status if found is not None else 404, found or {})

        do_GET = do_POST = do_PUT = answer

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _send(self, status: int, found: dict[str, Any]) -> None:
            text = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if status == 401:
                self.send_header("X-Error-Message", "Invalid credentials in Authorization header")
            self.end_headers()
            self.wfile.write(text)

    return Handler


def _found(hub: Hub, path: str, body: bytes) -> dict[str, Any] | None:
    """The answer to a request; None: there is no such thing here."""
    if path == "/api/repos/create":
        hub.created.append(json.loads(body))
        name = "/".join(filter(None, (hub.created[-1]["organization"], hub.created[-1]["name"])))
        return {"url": f"{hub.address}/{name}"}
    if path == "/api/validate-yaml":
        return {"errors": [], "warnings": []}
    if "/preupload/" in path:
        return {"files": [_sorted(file) for file in json.loads(body)["files"]]}
    if path.endswith("/info/lfs/objects/batch"):
        return {"transfer": "basic", "objects": [_wanted(hub, one) for one in json.loads(body)["objects"]]}
    if path.startswith("/lfs/put/"):
        hub.stored[path.rpartition("/")[2]] = body
        return {}
    if path == "/lfs/verify":
        asked = json.loads(body)
        return {} if len(hub.stored[asked["oid"]]) == asked["size"] else None
    if "/commit/" in path:
        hub.commits.append(dict(_committed(line) for line in map(json.loads, body.splitlines()) if line))
        name = path.removeprefix("/api/models/").partition("/commit/")[0]
        return {"commitUrl": f"{hub.address}/{name}/commit/{COMMIT}", "commitOid": COMMIT}
    return None


def _sorted(file: dict[str, Any]) -> dict[str, Any]:
    large = file["path"].endswith(".safetensors")
    return {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}


def _wanted(hub: Hub, one: dict[str, Any]) -> dict[str, Any]:
    put, verify = f"{hub.address}/lfs/put/{one['oid']}", f"{hub.address}/lfs/verify"
    return one | {"actions": {"upload": {"href": put}, "verify": {"href": verify}}}


def _committed(line: dict[str, Any]) -> tuple[str, Any]:
    value = line["value"]
    if line["key"] == "file":
        assert value["encoding"] == "base64"
        return value["path"], base64.b64decode(value["content"])
    if line["key"] == "lfsFile":
        assert value["algo"] == "sha256"
        return value["path"], value["oid"]
    return "summary", value["summary"]
