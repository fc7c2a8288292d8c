"""Jobs forked from a process that has imported all: the same as plain processes, whatever happens to them."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from papers import GRAPH, RECIPES
from warm_workflow import NO_GPU, Workflow, opened, runs, wait

from encore.runtime.environment import names_hub
from encore.workflow.jobs import Jobs
from encore.workflow.outputs import Report
from encore.workflow.targets import Choice
from encore.workflow.warm.client import VARIABLE, may_be_warm

pytestmark = pytest.mark.slow  # servers and their jobs: processes

ROOT = Path(__file__).parents[2]
STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.fixture
def folder(tmp_path) -> Path:
    """Our workflow's code, with stand-ins for the two commands."""
    for path in ("errors.py", "runtime", "workflow", "recipe", "__init__.py"):
        copy = shutil.copytree if (ROOT / "encore" / path).is_dir() else shutil.copy
        (tmp_path / "encore").mkdir(exist_ok=True)
        copy(ROOT / "encore" / path, tmp_path / "encore" / path)
    for command in ("encore/stages/__main__.py", "evals/evaluate.py"):
        (tmp_path / command).parent.mkdir()
        (tmp_path / command).with_name("__init__.py").touch()
        shutil.copy(STAND_IN, tmp_path / command)
    return tmp_path


@pytest.fixture
def workflow(folder) -> Iterator[Workflow]:
    yield from opened(folder)


@pytest.mark.parametrize("deaf", [False, True])
def test_a_warm_job_sees_what_a_plain_one_sees(workflow, deaf):
    server = workflow.server()
    job = ["facts", "ü", *NO_GPU]
    both = ("off", workflow.name)
    told = [workflow.ask(*job, deaf=deaf, **{VARIABLE: name, "_": "x"}).stdout for name in both]
    plain, warm = map(json.loads, told)
    assert (plain.pop("loaded"), warm.pop("loaded")) == ([], [server])
    del plain["environment"][VARIABLE], warm["environment"][VARIABLE]
    assert warm == plain


def test_the_first_jobs_environment_is_that_of_all(folder):
    """One that sees other variables is plain; what a shell notes in passing makes no difference."""
    for workflow in opened(folder):
        job = ["warm", *NO_GPU]
        loaded = [
            json.loads(workflow.ask(*job, **more).stdout)["loaded"]
            for more in ({"A": "1"}, {"A": "1", "_": "/bin/x"}, {"A": "2"}, {}, {"A": "1"})
        ]
    first = loaded[0]
    assert len(first) == 1
    assert loaded == [first, first, [], [], first]


def test_nothing_is_loaded_before_a_job_asks(workflow):
    time.sleep(0.5)
    assert not (workflow.folder / "loads.txt").exists()
    first, second = workflow.server(), workflow.server()
    assert first == second
    assert (workflow.folder / "loads.txt").read_text() == f"{first}\n" * 2  # for each command


@pytest.mark.parametrize(
    "ending",
    [
        ("status", "0"),
        ("late", "alone"),
        ("late", "thread"),
        ("status", "3"),
        ("exit", "7"),
        ("raise",),
        ("signal", "9"),
        ("signal", "15"),
    ],
)
def test_a_job_ends_as_a_plain_one_and_harms_no_other(workflow, ending):
    server = workflow.server()
    plain, warm = (workflow.ask(*ending, *NO_GPU, **{VARIABLE: name}) for name in ("off", workflow.name))
    assert (warm.returncode, warm.stdout) == (plain.returncode, plain.stdout)
    assert warm.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]
    assert workflow.server() == server


def test_stdin_and_both_commands(workflow):
    server = workflow.server()
    assert workflow.ask("echo", *NO_GPU, module="evals.evaluate", given="hello").stdout == "hello\n"
    assert workflow.server() == server
    done = workflow.ask(*NO_GPU, module="nothing")  # is not asked of the server
    assert "No module named nothing" in done.stderr


@pytest.mark.fault(
    "kill -9 of a job's own process", "a job forked from the warm process", "the job ends with it"
)
def test_a_job_ends_with_its_client(workflow):
    server = workflow.server()
    client = workflow.begin("work", *NO_GPU)
    job = int((workflow.folder / "begun.txt").read_text())
    assert job != client.pid
    assert os.getpgid(job) == client.pid
    client.kill()
    client.wait()
    wait(lambda: not runs(job))
    assert workflow.server() == server


def test_a_client_that_waits_for_the_imports_is_interrupted_without_a_word(folder):
    (folder / "load.py").write_text("Path('loading.txt').touch(); time.sleep(1)")
    for workflow in opened(folder):
        client = workflow.client("warm", *NO_GPU)
        wait((folder / "loading.txt").exists)
        client.send_signal(signal.SIGINT)
        assert client.communicate(timeout=20) == ("", "")
        assert client.returncode == -signal.SIGINT
        assert workflow.server()


@pytest.mark.fault("SIGINT", "a job, or its whole process group", "one line; no traceback, no orphan")
@pytest.mark.parametrize("to_group", [True, False])
def test_an_interrupted_job_stops_once_and_in_its_own_way(workflow, to_group):
    server = workflow.server()
    client = workflow.begin("work", *NO_GPU)
    (os.killpg if to_group else os.kill)(client.pid, signal.SIGINT)
    os.kill(server, signal.SIGINT)  # as of a terminal, whose group it may be in
    out, err = client.communicate(timeout=20)
    line = "stopped; nothing is saved\n"
    assert (out, err, client.returncode) == (line, line, 130)
    assert workflow.server() == server


@pytest.mark.fault("kill -9 of the warm process", "while its jobs work", "they go on as plain processes")
def test_a_job_whose_server_is_killed_goes_on_as_a_plain_process(workflow):
    server = workflow.server()
    client = workflow.begin("work", *NO_GPU)
    job = int((workflow.folder / "begun.txt").read_text())
    os.kill(server, signal.SIGKILL)
    out, err = client.communicate(timeout=20)
    assert (out, client.returncode) == ("begun\n", 0)
    assert err == "the job's warm process is gone; starting anew as a plain one\n"
    assert int((workflow.folder / "begun.txt").read_text()) == client.pid
    assert not runs(job)
    assert workflow.server() is None  # and no word of it


@pytest.mark.fault(
    "kill -9 or SIGTERM of the workflow alone",
    "while it serves jobs",
    "the warm process and its jobs end with it",
)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_server_ends_with_the_workflow(workflow, how):
    server = workflow.server()
    if how:
        workflow.process.send_signal(how)
    else:
        workflow.process.stdin.close()
    workflow.process.wait(timeout=20)
    wait(lambda: not runs(server))
    assert workflow.process.stderr.read() == ""


def test_what_could_differ_is_plain(workflow):
    server = workflow.server()
    elsewhere = workflow.folder / "elsewhere"
    elsewhere.mkdir()
    path = {"PYTHONPATH": str(workflow.folder)}
    for arguments, more in [
        (NO_GPU, {"OMP_NUM_THREADS": "2"}),
        (NO_GPU, {"MKL_NUM_THREADS": "2"}),
        (NO_GPU, {"HF_HUB_OFFLINE": "0"}),
        (NO_GPU, {"cwd": elsewhere, **path}),
        (("--gpus", "1"), {}),
        ((), {}),
        (("--config", '{"model": {"hub": "x"}}', *NO_GPU), {}),
    ]:
        done = workflow.ask("warm", *arguments, **more)
        assert json.loads(done.stdout)["loaded"] == [], (arguments, more)
        assert done.stderr == ""
    assert workflow.server() == server
    with (workflow.folder / "evals/evaluate.py").open("a") as code:
        code.write("# edited\n")
    assert workflow.server() is None


def test_every_job_of_a_recipe_that_names_the_hub_is_plain():
    """And every other one that needs no GPU is warm."""
    environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    warm = set()
    for name, recipe in RECIPES.items():
        for scale in recipe.scales:
            jobs = Jobs(GRAPH, Choice(scale, 1))
            for node in jobs.nodes([Report(name, scale, "report")]):
                kind = "stage" if node.kind == "stage" else "checkpoint"
                wildcards = _Wildcards(vars(node) | {kind: node.name})
                model = jobs.model(wildcards) if node.kind == "eval" else ""
                arguments = ["--config", jobs.config(wildcards), "--model", model, *NO_GPU]
                hub = names_hub(GRAPH.config(node)) or '"hub"' in model or "lm_eval" in arguments[1]
                assert may_be_warm(arguments, environment) is not hub, node
                warm.add((scale, hub))
    assert {("cpu", False), ("paper", True)} <= warm


class _Wildcards(dict):
    __getattr__ = dict.__getitem__


def test_where_the_imports_fail_every_job_is_plain_after_one_line(folder):
    for text, reason in [
        ("raise OSError('no torch here')", "no torch here"),
        ("sys.exit('usage')", "usage"),
        ("threading.Thread(target=time.sleep, args=[60], daemon=True).start()", "the imports have started"),
    ]:
        (folder / "load.py").write_text(text)
        for workflow in opened(folder):
            assert workflow.server() is None
            assert workflow.server() is None
            workflow.process.kill()
            (line,) = workflow.process.stderr.read().splitlines()
            assert line.startswith(f"warning: every job imports for itself: {reason}")


def test_what_the_imports_print_goes_to_the_first_job(folder):
    (folder / "load.py").write_text("print('a line'); print('a warning', file=sys.stderr)")
    for workflow in opened(folder):
        told = [workflow.ask("status", "0", *NO_GPU) for _ in range(2)]
        assert [one.stdout for one in told] == ["a line\n" * 2, ""]  # of each command
        assert [one.stderr for one in told] == ["a warning\n" * 2, ""]
        workflow.process.kill()
        assert workflow.process.stderr.read() == ""


def test_the_imports_see_no_gpu(folder):
    """They would start its driver, which a fork does not survive; the jobs see what is there."""
    (folder / "load.py").write_text("print(repr(os.environ['CUDA_VISIBLE_DEVICES']))")
    for workflow in opened(folder):
        first = workflow.ask("facts", *NO_GPU, CUDA_VISIBLE_DEVICES="0").stdout.splitlines()
        assert first[:-1] == ["''"] * 2
        told = json.loads(first[-1])
        assert told["loaded"]
        assert told["environment"]["CUDA_VISIBLE_DEVICES"] == "0"


def test_switched_off_and_nobody_there(folder):
    for workflow in opened(folder, **{VARIABLE: "off"}):
        assert workflow.name == "off"
        assert workflow.server() is None
    for name in ("encore-nobody", ""):
        done = Workflow(folder, workflow.process, name).ask("status", "3", *NO_GPU)
        assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(workflow):
    server = workflow.server()
    talk = (
        f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{workflow.name}'); print(s.recv(1))"
    )
    done = subprocess.run(["/usr/bin/env", "python3", "-c", talk], user=65534, capture_output=True, text=True,
                          check=False, timeout=20)  # fmt: skip
    assert done.stdout == "b'-'\n", done.stderr
    assert workflow.server() == server
