"""`encore watch` as it is started: what it serves, to whom, and how it ends."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import interrupts
import pytest
import watched_run

from analysis.watch.server import answer
from analysis.watch.watcher import Watcher

ROOT = Path(__file__).parents[3]


@pytest.fixture
def trainings(tmp_path):
    return watched_run.make(tmp_path)


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "encore", "watch", *words]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    pipe, heed = subprocess.PIPE, interrupts.heed
    return subprocess.Popen(
        command, cwd=folder, env=env, stdout=pipe, stderr=pipe, text=True, preexec_fn=heed
    )


@contextlib.contextmanager
def serving(folder: Path, *words: str):
    """The process, and the port that it prints."""
    process = started(folder, "--port", "0", *words)
    try:
        line = process.stdout.readline()
        printed = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert printed, line + process.stderr.read()
        yield process, int(printed[1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def get(port: int, path: str, host: str | None = None, method: str = "GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def content(port: int, path: str):
    answer, body = get(port, path)
    assert answer.status == 200, body
    return json.loads(body)


def test_the_page_and_what_it_asks_for(trainings, tmp_path):
    with serving(tmp_path) as (_, port):
        answer, body = get(port, "/")
        assert b"encore" in body.lower()
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for name in re.findall(r'(?:src|href)="([\w.]+)"', body.decode()):
            assert get(port, f"/{name}")[0].status == 200
        assert content(port, "/jobs.json")["runs"][0]["counts"]["running"] == 1
        run = content(port, "/run.json?run=toy/cpu&stage=grpo")
        assert run["charts"][0]["lines"][0]["steps"] == [*range(1, 13)]
        group = content(port, "/rollout.json?job=toy/cpu/a/seed1/grpo")["questions"][0]["group"]
        assert [row["advantage"] for row in group] == [-1.5, -0.5, 0.5, 1.5]
        trainings["a/seed1"].go_on(4)
        deadline = time.monotonic() + 20
        while content(port, "/jobs.json")["active"][0]["counted"] != 16:
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/jobs.json", "127.0.0.1", 200),
        ("/jobs.json", "localhost:9999", 200),  # through a tunnel, its other end has another port
        ("/jobs.json", "evil.example", 403),
        ("/", "127.0.0.1.evil.example", 403),
        ("/", "[", 400),
        ("/../../etc/passwd", None, 404),
        ("/..%2f..%2fetc/passwd", None, 404),
        ("//etc/passwd", None, 404),
        ("/watch.py", None, 404),
        ("/jobs.json?" + "&".join("a=1" for _ in range(99)), None, 400),
        ("//[/", None, 404),
    ],
)
def test_who_is_answered(trainings, tmp_path, path, host, status):
    with serving(tmp_path) as (_, port):
        assert get(port, path, host)[0].status == status


@pytest.mark.parametrize(
    ("target", "host"), [("http://[/", "localhost"), ("/", "]["), ("/", ""), ("/", "\x00")]
)
def test_a_request_that_cannot_be_read_is_refused(target, host):
    assert answer(Watcher(Path("results"), ()), target, host).status in (400, 403)


def test_nothing_of_another_folder_is_served(trainings, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/completions.jsonl").write_text(json.dumps(watched_run.rollout(1, "secret")[0]))
    with serving(tmp_path) as (_, port):
        for job in ("../secret", "toy/cpu/a/seed1/../../../../../secret", str(tmp_path / "secret"), "%00"):
            assert content(port, f"/rollout.json?job={job}") is None
        assert get(port, "/jobs.json", method="POST")[0].status == 501


def test_it_listens_to_this_machine_alone(trainings, tmp_path):
    with serving(tmp_path) as (process, port):
        table = Path(f"/proc/{process.pid}/net/tcp").read_text().split("\n")[1:]
        bound = [line.split()[1] for line in table if line and line.split()[3] == "0A"]
        assert [address for address in bound if address.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_ctrl_c_ends_it_without_a_traceback(trainings, tmp_path):
    with serving(tmp_path) as (process, port):
        held = socket.create_connection(("127.0.0.1", port))  # a browser keeps its connections
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
        assert process.stderr.read() == ""
        held.close()


def test_a_kill_while_it_serves_leaves_all_as_it_was(trainings, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in watched_run.files(tmp_path)}
    with serving(tmp_path) as (process, port):
        content(port, "/run.json?run=toy/cpu")
        process.kill()
    assert {path: path.stat().st_mtime_ns for path in watched_run.files(tmp_path)} == before
    with serving(tmp_path) as (_, port):
        assert content(port, "/jobs.json")["runs"]


def test_a_connection_that_breaks_or_is_silent_stops_no_one_else(trainings, tmp_path):
    with serving(tmp_path) as (process, port):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for connection in silent[:10]:
            connection.sendall(b"GET /run.json?run=toy/cpu HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()  # by a reset, before the answer
        assert content(port, "/jobs.json")["runs"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
        assert process.stderr.read() == ""
        for connection in silent[10:]:
            connection.close()


def test_a_port_that_is_taken_names_the_next_free_one(trainings, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = started(tmp_path, "--port", str(port))
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    named = re.fullmatch(
        rf"error: --port {port}: the port is in use; the next that is free: --port (\d+)\n", said
    )
    assert int(named[1]) > port


def test_an_empty_folder_says_what_to_run(tmp_path):
    (tmp_path / "results").mkdir()
    process = started(tmp_path)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert said == "error: results: no run is here yet; start one, such as: encore run r1_zero\n"


def test_it_starts_without_what_takes_seconds(trainings, tmp_path):
    code = (
        "import sys\n"
        "from encore.commands import watch\n"
        "from pathlib import Path\n"
        "watcher = watch.Watcher(Path('results'), ()); watcher.check_results(); watcher.run('toy/cpu', '')\n"
        "heavy = {'torch', 'trl', 'transformers', 'datasets', 'pandas', 'matplotlib', 'numpy', 'scipy'}\n"
        "print(heavy & set(sys.modules))"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
