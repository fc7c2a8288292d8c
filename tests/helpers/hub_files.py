"""The read side of the loopback Hub: models and data sets from folders, each with its revisions.

`reply` answers what huggingface_hub 1.33 asks to list, look up and download files.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

MAIN = "main"
COMMIT_HASH = re.compile("[0-9a-f]{40}")
FILE = re.compile(r"/(?P<data>datasets/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
API = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)"
    r"(?:/(?P<what>revision|tree|paths-info)/(?P<revision>[^/]+)(?:/(?P<path>.+))?)?"
)
ABSENT = {"Repo": "Repository", "Revision": "Invalid rev id", "Entry": "Entry"}  # of X-Error-Code -> its text


@dataclass
class Repository:
    """A model or data set. `revisions`: commit -> its folder; the last one is also the branch main."""

    revisions: dict[str, Path] = field(default_factory=dict)

    def commit(self, revision: str) -> str | None:
        """Return the commit that a revision names, None if there is none."""
        if revision == MAIN and self.revisions:
            return [*self.revisions][-1]
        return revision if revision in self.revisions else None


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Shelf:
    """The repositories of a Hub: ("models" or "datasets", name) -> repository."""

    repositories: dict[tuple[str, str], Repository] = field(default_factory=dict)

    def add(self, kind: str, name: str, folder: Path, revision: str) -> None:
        """Serve a folder as a revision, a commit of 40 hexadecimal digits, which becomes the newest one."""
        assert COMMIT_HASH.fullmatch(revision)
        self.repositories.setdefault((kind, name), Repository()).revisions[revision] = folder

    def reply(self, path: str, query: str, body: bytes, sent: str | None) -> Reply | None:
        """Return the answer to a request, None if it reads nothing of a repository.

        `sent`: the header Range of the request.
        """
        path = unquote(path)
        if match := FILE.fullmatch(path):
            kind = "datasets" if match["data"] else "models"
            return self._file(kind, match["name"], match["revision"], match["path"], sent)
        if match := API.fullmatch(path):
            return self._api(match, parse_qs(query), body)
        return None

    def _place(self, kind: str, name: str, revision: str) -> tuple[str, Path] | Reply:
        """Return the commit and folder of a revision, or the Hub's answer if there is none."""
        repository = self.repositories.get((kind, name))
        if repository is None:
            return absent("Repo")
        commit = repository.commit(revision)
        return absent("Revision") if commit is None else (commit, repository.revisions[commit])

    def _file(self, kind: str, name: str, revision: str, path: str, sent: str | None) -> Reply:
        place = self._place(kind, name, revision)
        if isinstance(place, Reply):
            return place
        commit, folder = place
        file = folder / path
        if not file.is_file():
            return absent("Entry", {"X-Repo-Commit": commit})
        content = file.read_bytes()
        headers = {
            "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
        }
        if not (asked := re.fullmatch(r"bytes=(\d+)-(\d*)", sent or "")):
            return Reply(200, content, headers)
        first, last = int(asked[1]), int(asked[2] or len(content) - 1)
        if first >= len(content):
            return Reply(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        part = content[first : last + 1]
        shown = f"bytes {first}-{first + len(part) - 1}/{len(content)}"
        return Reply(206, part, headers | {"Content-Range": shown})

    def _api(self, match: re.Match[str], query: Mapping[str, list[str]], body: bytes) -> Reply:
        kind, name, what = match["kind"], match["name"], match["what"] or "revision"
        place = self._place(kind, name, match["revision"] or MAIN)
        if isinstance(place, Reply):
            return place
        commit, folder = place
        if what == "revision":
            files = [{"rfilename": entry["path"]} for entry in _entries(folder) if entry["type"] == "file"]
            about = {"_id": name, "id": name, "sha": commit, "siblings": files, "tags": [], "downloads": 0}
            return answered(about | {"private": False, "gated": False, "disabled": False, "likes": 0})
        if what == "paths-info":
            asked = set(_paths(body))
            return answered([entry for entry in _entries(folder) if entry["path"] in asked])
        under = match["path"] or ""
        if under and not (folder / under).is_dir():
            return absent("Entry")
        deep = query.get("recursive", ["false"])[0].lower() in ("true", "1")
        entries = [entry for entry in _entries(folder) if _is_below(entry["path"], under, deep)]
        return answered(entries)


def answered(found: Any) -> Reply:
    return Reply(200, json.dumps(found).encode(), {"Content-Type": "application/json"})


def absent(what: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Return the Hub's 404 for a repository, revision or file that is not there."""
    told = {"X-Error-Code": f"{what}NotFound", "X-Error-Message": f"{ABSENT[what]} not found"}
    return Reply(404, b"{}", told | dict(headers or {}))


def _paths(body: bytes) -> list[str]:
    """Return the paths that a request for paths-info names, in JSON or as a form."""
    text = body.decode()
    named = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
    return [named] if isinstance(named, str) else named


def _entries(folder: Path) -> list[dict[str, Any]]:
    """Return every file and folder below a folder, as the Hub's API lists them."""
    return [_entry(path, folder) for path in sorted(folder.rglob("*"))]


def _entry(path: Path, folder: Path) -> dict[str, Any]:
    name = path.relative_to(folder).as_posix()
    if path.is_dir():
        return {"type": "directory", "path": name, "oid": hashlib.sha1(name.encode()).hexdigest(), "size": 0}
    content = path.read_bytes()
    return {"type": "file", "path": name, "oid": hashlib.sha1(content).hexdigest(), "size": len(content)}


def _is_below(path: str, under: str, deep: bool) -> bool:
    rest = path.removeprefix(f"{under}/" if under else "")
    return (not under or path.startswith(f"{under}/")) and (deep or "/" not in rest)
