"""The life of a stage's vLLM server, with small programs in its place; test_vllm_stage trains with one."""

import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trl.generation.vllm_client import VLLMClient

from encore.errors import UserError
from encore.recipe.grpo_args import GrpoArgs
from encore.runtime import gpus
from encore.runtime.ports import free_ports
from encore.sampling import vllm_server
from encore.sampling.vllm_server import HOST

pytestmark = pytest.mark.slow  # servers that are awaited

# answers /health as vLLM does, 503 while it loads, then 200; and in two parts
ANSWERS = """
import http.server, sys, time
ready = time.monotonic() + 0.3
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" and time.monotonic() > ready else 503)
        self.end_headers()
        for part in (b"one", b"two"):
            self.wfile.write(part)
            time.sleep(0.05)
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("serving", flush=True)
server.timeout = 1
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    server.handle_request()
raise RuntimeError("CUDA error: an illegal memory access was encountered")
"""
FAILS = """
print("INFO 11-22 loading")
print("(EngineCore pid=7) ValueError: No available memory for the cache blocks. Try 0.95.")
print("RuntimeError: Engine core initialization failed. See root cause above.")
raise SystemExit(1)
"""


@pytest.fixture
def started(tmp_path):
    """Starts a program as a server; ends it after the test."""
    servers, lines = [], []

    def start(code, *arguments):
        (port,) = free_ports(1)
        command = [sys.executable, "-c", code, str(port), *map(str, arguments)]
        environment = vllm_server.environment("")
        server = vllm_server.Server(command, environment, HOST, port, tmp_path / "run/vllm.log", lines.append)
        servers.append(server)
        return server, lines

    yield start
    for server in servers:
        server.close()


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_it_is_awaited_and_ended(started, monkeypatch):
    monkeypatch.setattr(vllm_server, "LOOK", 0.05)
    monkeypatch.setattr(vllm_server, "EVERY", 0.0)
    server, lines = started(ANSWERS, 100)
    server.ready(60)
    assert lines[0] == "waiting for the vLLM server: 0:00 of at most 1:00"
    assert lines[-1].startswith("the vLLM server answers after 0:0")
    client = VLLMClient.__new__(VLLMClient)  # the way that TRL finds it
    client.base_url = f"http://{HOST}:{server.port}"
    client.check_server()
    server.close()
    assert not answers(server.port)
    log = server.log.read_text()
    assert log.startswith("serving\n")
    assert "Error" not in log  # as a connection that is cut off leaves


def test_one_that_fails_is_told_with_its_first_error(started, monkeypatch):
    says = (
        r"vllm_mode: the vLLM server ended with status 1: ValueError: No available memory for the cache "
        r"blocks\. Try 0\.95\.; see .*run/vllm\.log$"
    )
    for _ in range(2):
        server, _ = started(FAILS)
        with pytest.raises(UserError, match=says):
            server.ready(60)
    quiet, _ = started("raise SystemExit(4)")  # what earlier ones have logged is not its own
    with pytest.raises(UserError, match="ended with status 4: its log is empty; see"):
        quiet.ready(60)
    assert server.log.read_text().count("ValueError") == 2


def test_one_that_does_not_answer_is_told(started, monkeypatch):
    server, _ = started("import time; print('downloading', flush=True); time.sleep(100)")
    while not server.log.read_text():
        pass
    says = r"^args.vllm_server_timeout: the vLLM server has not answered for 0\.5 s: downloading; see "
    with pytest.raises(UserError, match=says):
        server.ready(0.5)


def test_one_that_ends_in_mid_training_ends_the_stage_with_one_line(tmp_path):
    """The main thread waits for weights to be received, and would do so for ever."""
    stage = """
import sys, time
from pathlib import Path
from encore.runtime.ports import free_ports
from encore.sampling import vllm_server
(port,) = free_ports(1)
command = [sys.executable, "-c", sys.argv[1], str(port), "3"]
environment = vllm_server.environment("")
server = vllm_server.Server(command, environment, vllm_server.HOST, port, Path("vllm.log"), print)
server.ready(60)
time.sleep(100)
"""
    command = [sys.executable, "-c", stage, ANSWERS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    line = (
        "error: vllm_mode: the vLLM server ended with status 1: RuntimeError: CUDA error: an illegal memory "
        "access was encountered; see vllm.log"
    )
    assert done.stdout.splitlines()[-1] == done.stderr.splitlines()[-1] == line


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("", "its log is empty"),
        ("a\nb\n\n", "b"),
        (
            "INFO x\nOSError: [Errno 98] Address already in use\nb",
            "OSError: [Errno 98] Address already in use",
        ),
        (
            "[rank0] CUDA out of memory.\nRuntimeError: y",
            "[rank0] CUDA out of memory.",
        ),
        ("A" * vllm_server.TAIL, "A" * 300),
        ("A " * vllm_server.TAIL, "A " * 150),
    ],
)
def test_the_reason_in_a_log(log, told):
    assert vllm_server.reason(log) == told


@given(st.text())
def test_any_log_has_a_reason_of_one_line(log):
    assert vllm_server.reason(log).splitlines()[1:] == []


def test_the_command_is_trls(monkeypatch):
    args = GrpoArgs(vllm_max_model_length=2048, vllm_gpu_memory_utilization=0.8)
    command = vllm_server.command("folder", HOST, 8123, 4, "bfloat16", 7, args)
    options = dict(zip(command[5::2], command[6::2], strict=False))
    assert command[1:5] == ["-m", "vllm.entrypoints.cli.main", "serve", "folder"]
    assert (
        options.items()
        >= {
            "--host": "127.0.0.1",
            "--port": "8123",
            "--tensor-parallel-size": "4",
            "--gpu-memory-utilization": "0.8",
            "--dtype": "bfloat16",
            "--max-model-len": "2048",
            "--logprobs-mode": "processed_logprobs",
            "--weight-transfer-config": '{"backend": "nccl"}',
            "--load-format": "safetensors",
            "--generation-config": "vllm",
            "--seed": "7",
        }.items()
    )
    alone = vllm_server.command("folder", HOST, 8123, 0, "float32", 7, GrpoArgs())
    assert alone[alone.index("--tensor-parallel-size") + 1] == "1"
    assert alone[alone.index("--gpu-memory-utilization") + 1] == "0.9"
    assert "--max-model-len" not in alone


def test_the_environment_is_not_that_of_a_rank(monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv(gpus.VISIBLE, "0,1")
    environment = vllm_server.environment("2,3")
    assert environment[gpus.VISIBLE] == "2,3"
    assert environment["VLLM_SERVER_DEV_MODE"] == "1"
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"} & {*environment}
    assert environment["PATH"]


def test_ports_are_free_and_differ():
    ports = free_ports(3)
    assert len({*ports}) == 3
    assert not any(map(answers, ports))
