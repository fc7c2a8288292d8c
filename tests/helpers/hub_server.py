"""A Hub on the loopback, for the real huggingface_hub client: it keeps what is uploaded, as the Hub would.

It speaks what an upload needs (huggingface_hub 1.33): create a repository, sort files into text and large
ones, take large ones by Git LFS, and commit. What it lets read is in hub_files. Xet's storage, which the Hub
prefers, has a protocol of its own that changes with hf_xet; here it is only met failing.
"""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hub_files import Reply, Shelf, answered

COMMIT = "c" * 40


@dataclass
class Hub:
    """What a server has been told.

    `fails`: part of a path -> the status that is answered in its place. `gated`: parts of paths that need
    more than this token. `cuts`: part of a path -> the bytes after which every answer breaks off.
    """

    address: str = ""
    token: str = "hf_the_right_one"
    fails: dict[str, int] = field(default_factory=dict)
    gated: list[str] = field(default_factory=list)
    cuts: dict[str, int] = field(default_factory=dict)
    shelf: Shelf = field(default_factory=Shelf)
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

    def reading(self, home: Path) -> dict[str, str]:
        """What a client that reads from here is told, and the folder of its caches."""
        return self.environment() | {"HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}


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
            path, _, query = self.path.partition("?")
            hub.asked.append(f"{self.command} {path}")
            self._send(self._reply(path, query, body), path)

        do_GET = do_HEAD = do_POST = do_PUT = answer

        def _reply(self, path: str, query: str, body: bytes) -> Reply:
            for part, status in hub.fails.items():
                if part in path:
                    return _refused(status)
            signed = path.startswith("/lfs/put/")  # whoever has such an address may write to it
            if not signed and self.headers.get("Authorization") != f"Bearer {hub.token}":
                return _refused(401)
            if any(part in path for part in hub.gated):
                return _refused(403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
            if reply := hub.shelf.reply(path, query, body, self.headers.get("Range")):
                return reply
            found = _found(hub, path, body)
            return _refused(404) if found is None else answered(found)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _send(self, reply: Reply, path: str) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            cut = next((most for part, most in hub.cuts.items() if part in path), None)
            self.wfile.write(reply.body[:cut])
            self.close_connection = self.close_connection or cut is not None

    return Handler


def _refused(status: int, headers: Mapping[str, str] | None = None) -> Reply:
    told = {"X-Error-Message": "Invalid credentials in Authorization header"} if status == 401 else {}
    return Reply(
        status, b'{"error": "no"}', {"Content-Type": "application/json"} | told | dict(headers or {})
    )


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
