"""The server of the page that shows running jobs; it can be reached from this machine only.

No request can name a file: only the paths in PAGES, and three paths of JSON data, have an answer.
"""

import errno
import json
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from analysis.watch.watcher import Watcher
from encore.errors import UserError

HOST = "127.0.0.1"
# names of this server; other names are refused, because a page of another site would use its own name
HOSTS = ("127.0.0.1", "localhost")
TEMPLATES = Path(__file__).parents[1] / "page/templates"
PAGES = {
    "/": ("watch.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/watch.css": ("watch.css", "text/css"),
    "/watch.js": ("watch.js", "text/javascript"),
    "/charts.js": ("charts.js", "text/javascript"),
    "/svg.js": ("svg.js", "text/javascript"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PATIENCE = 30.0  # seconds that a connection may be silent
LAST_PORT = 65535


class Answer(NamedTuple):
    """The answer to a request; `kind` is its media type."""

    status: HTTPStatus
    kind: str
    body: bytes


def _refused(status: HTTPStatus, why: str) -> Answer:
    return Answer(status, "text/plain", f"{why}\n".encode())


def answer(watcher: Watcher, target: str, host: str) -> Answer:
    """Return the answer to a GET request for `target`, a path with a query; `host` is its header Host."""
    try:
        name = urlsplit(f"//{host}").hostname
        asked = urlsplit(target)
        words = {key: values[-1] for key, values in parse_qs(asked.query, max_num_fields=8).items()}
    except ValueError:
        return _refused(HTTPStatus.BAD_REQUEST, "the request cannot be read")
    if name not in HOSTS:
        return _refused(HTTPStatus.FORBIDDEN, f"this server is reached as {HOST} or localhost alone")
    if asked.path in PAGES:
        file, kind = PAGES[asked.path]
        return Answer(HTTPStatus.OK, kind, (TEMPLATES / file).read_bytes())
    answers: Mapping[str, Callable[[], tuple[object, ...] | None]] = {
        "/jobs.json": watcher.overview,
        "/run.json": lambda: watcher.run(words.get("run", ""), words.get("stage", "")),
        "/rollout.json": lambda: watcher.rollout(words.get("job", "")),
    }
    if asked.path not in answers:
        return _refused(HTTPStatus.NOT_FOUND, "nothing is here")
    body = json.dumps(_plain(answers[asked.path]()), allow_nan=False).encode()
    return Answer(HTTPStatus.OK, "application/json", body)


def _plain(value: object) -> object:
    """Return a value for JSON: named tuples become mappings and other tuples lists, at any depth."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


class Handler(BaseHTTPRequestHandler):
    """A handler that answers GET requests, and refuses any other method."""

    protocol_version = "HTTP/1.1"
    server_version = "encore"
    sys_version = ""
    timeout = PATIENCE

    def __init__(self, watcher: Watcher, *arguments: object):
        self.watcher = watcher
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        sent = answer(self.watcher, self.path, self.headers.get("Host", ""))
        self.send_response(sent.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{sent.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(sent.body)))
        self.end_headers()
        self.wfile.write(sent.body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, because the page sends a request every two seconds."""


class Server(ThreadingHTTPServer):
    """A server whose threads end with it, and which prints nothing if a browser closes its connection."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a broken connection, and print any other error, which is a mistake in this program."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def listen(watcher: Watcher, port: int) -> Server:
    """Return a server that listens on `port` (0: any free port). Raises UserError if it is not available."""
    try:
        return Server((HOST, port), partial(Handler, watcher))
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else (error.strerror or "is not available")
        raise UserError(
            f"--port {port}: the port {why}; the next that is free: --port {_free(port)}"
        ) from None


def _free(port: int) -> int:
    """Return the first free port above `port`; 0 if there is none."""
    for number in range(max(port + 1, 1024), LAST_PORT):
        with socket.socket() as tried:
            try:
                tried.bind((HOST, number))
            except OSError:
                continue
            return number
    return 0
