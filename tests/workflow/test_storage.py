"""Results and checkpoints in a bucket: a server of S3 on loopback, and machines that share no folder."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import kubernetes_server
import pytest

from encore.errors import UserError
from encore.runtime import sentinel
from encore.runtime.ports import free_ports
from encore.workflow import carry, storage

boto3 = pytest.importorskip("boto3", reason="snakemake-storage-plugin-s3 is of the extra kubernetes")
BUCKET = "s3://encore/runs/ours"
PAGE = (Path(__file__).parents[2] / "docs/kubernetes.md").read_text(encoding="utf-8")


def options(beginning: str) -> list[str]:
    """The options of the page's command that begins so, but what it chooses of a recipe."""
    (command,) = re.findall(rf"`{beginning} r1_zero (.*?)`", PAGE)
    return shlex.split(command.removesuffix(" --config scale=gpu").replace("s3://BUCKET/FOLDER", BUCKET))


IN_BUCKET, ON_KUBERNETES = options("snakemake --cores"), options("snakemake")
RL = "checkpoints/demo/cpu/base-recipe/seed0/rl/"
EVERY = "EVERY = 60.0"


@pytest.fixture(scope="module")
def s3(tmp_path_factory) -> Iterator[dict[str, str]]:
    """The variables of a connection to a server of S3 with an empty bucket `encore`."""
    (port,) = free_ports(1)
    log = (tmp_path_factory.mktemp("s3") / "log").open("w")
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    server = subprocess.Popen(command, stdout=log, stderr=log)
    names = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    variables = names | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    try:
        yield variables
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def bucket(s3, monkeypatch) -> carry.Bucket:
    """The part of the bucket below BUCKET, empty."""
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the code is the folder's
    made = boto3.resource("s3").Bucket("encore")
    deadline = time.monotonic() + 60
    while True:
        try:
            made.create()
            break
        except Exception:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    made.objects.all().delete()
    return carry.Bucket.at(BUCKET)


def names(bucket: carry.Bucket, prefix: str = "") -> set[str]:
    return {path.as_posix() for path, _ in bucket.files(prefix)}


def elsewhere(project, folder: Path):
    """The project as another machine has it: what it is, and nothing of what was made."""
    made = ("results", "checkpoints", ".snakemake", "jobs.txt", "tracks.txt")
    shutil.copytree(project.folder, folder, ignore=shutil.ignore_patterns(*made))
    return type(project)(folder)


@pytest.mark.slow
def test_another_machine_goes_on_with_what_the_bucket_has(project, bucket, tmp_path_factory):
    assert len(project.run(*IN_BUCKET)) == 5
    page = "results/demo/cpu/quickstart.html"
    assert (project.folder / page).read_text() == "<html>"
    assert {page, "results/base/cpu/base-recipe/seed0/pretrain/metrics.lineage"} <= names(bucket)
    assert not any(name.endswith(".tar") for name in names(bucket))
    other = elsewhere(project, tmp_path_factory.mktemp("other") / "folder")
    done = other.snakemake(*IN_BUCKET)
    assert "Nothing to be done" in done.stderr
    assert done.stdout.splitlines()[-2:] == ["summary of demo quickstart seeds=1", page]
    # a new stage after stages whose weights are in the bucket alone
    other.edit(
        "demo",
        "rl: {run: toy, needs: {policy: sft}, dial: 1}",
        "rl: {run: toy, needs: {policy: sft}, dial: 2}",
    )
    made = other.run(*IN_BUCKET)
    assert made == ["demo/cpu/base-recipe/seed0/after", "demo/cpu/base-recipe/seed0/rl"]


@pytest.mark.fault(
    "the machine of a run is taken away", "while a stage trains", "another machine goes on from the bucket"
)
@pytest.mark.slow
def test_a_stage_goes_on_on_another_machine(project, bucket, tmp_path_factory):
    project.edit_file("encore/workflow/carry.py", EVERY, "EVERY = 0.1")
    environment = os.environ | {"TOY_SLEEP": "4", "ENCORE_WARM": "off"}
    with (tmp_path_factory.mktemp("log") / "log").open("w") as log:
        command = project.command(*IN_BUCKET)
        process = subprocess.Popen(
            command, cwd=project.folder, env=environment, stdout=log, stderr=log, process_group=0
        )
        deadline = time.monotonic() + 300
        jobs = project.folder / "jobs.txt"
        while not (jobs.exists() and "/rl from 0" in jobs.read_text() and names(bucket, RL)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(5)  # the second of three steps begins, and is stored
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    other = elsewhere(project, tmp_path_factory.mktemp("other") / "folder")
    done = other.snakemake(*IN_BUCKET)
    assert done.returncode == 0, done.stderr
    stages = [line for line in (other.folder / "jobs.txt").read_text().splitlines() if " from " in line]
    assert len(stages) == 1
    assert "/rl from 1 " in stages[0] or "/rl from 2 " in stages[0]


@pytest.fixture
def cluster(tmp_path_factory, s3) -> Iterator[kubernetes_server.Cluster]:
    """A cluster whose image has the environment of the tests, and a `pip` that has nothing to install."""
    folder = tmp_path_factory.mktemp("cluster")
    pip = folder / "bin/pip"
    pip.parent.mkdir()
    pip.write_text("#!/bin/sh\n")
    pip.chmod(0o755)
    path = f"{pip.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    image = {"PATH": path, "HOME": str(folder), "TOY_SLEEP": "0.5", "LANG": "C.UTF-8"}
    with kubernetes_server.cluster(folder, image) as served:
        yield served


@pytest.mark.fault("a pod is evicted", "while its stage trains", "the next pod goes on from the bucket")
@pytest.mark.slow
def test_pods_share_nothing_but_the_bucket(project, bucket, cluster, tmp_path_factory):
    pytest.importorskip(
        "kubernetes", reason="snakemake-executor-plugin-kubernetes is of the extra kubernetes"
    )
    project.edit_file("encore/workflow/carry.py", EVERY, "EVERY = 0.1")
    author = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=project.folder, check=True)
    cluster.image["TOY_SLEEP"] = "3"
    with (tmp_path_factory.mktemp("log") / "log").open("w+") as log:
        process = subprocess.Popen(
            [*project.command(*ON_KUBERNETES), "--seconds-between-status-checks", "1"],
            cwd=project.folder,
            env=os.environ | {"KUBECONFIG": str(cluster.config)},
            stdout=log,
            stderr=log,
        )
        deadline = time.monotonic() + 540
        evicted = False
        while process.poll() is None:
            assert time.monotonic() < deadline, Path(log.name).read_text()[-6000:]
            if not evicted and names(bucket, RL):
                time.sleep(3.5)
                cluster.evict([*cluster.pods][-1])
                evicted = True
            time.sleep(0.1)
        assert process.returncode == 0, Path(log.name).read_text()[-6000:]
    assert (project.folder / "results/demo/cpu/quickstart.html").read_text() == "<html>"
    told = [path.read_text() for path in cluster.folder.glob("pods/*/jobs.txt")]
    assert evicted
    assert sum("/rl from 0 " in text for text in told) == 1
    assert sum("/rl from 1 " in text or "/rl from 2 " in text for text in told) == 1
    assert not (project.folder / "checkpoints/demo").exists()
    (container,) = cluster.jobs.popitem()[1]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "0"


def test_a_product_that_the_bucket_lacks_in_part_is_told(bucket, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("checkpoints/final")
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text(name)
    metrics_json = Path("metrics.json")
    metrics_json.write_text(json.dumps(sentinel.of_folder(folder)))
    carry.put_result(bucket, metrics_json)
    shutil.rmtree(folder)
    carry.get_product(bucket, "metrics.json")
    assert sentinel.digest(folder) == sentinel.read_sentinel(metrics_json)["digest"]
    shutil.rmtree(folder)
    bucket.delete(folder / "config.json")
    with pytest.raises(UserError, match=r"checkpoints/final: not whole .* delete metrics.json"):
        carry.get_product(bucket, "metrics.json")
    assert not folder.exists()


def test_a_state_is_stored_whole_or_not_at_all(bucket, tmp_path, monkeypatch):
    """One that changes as it is packed is not stored; the one that was stored before stays."""
    monkeypatch.chdir(tmp_path)
    folder = Path("checkpoints/stage")
    (folder / "checkpoint-1").mkdir(parents=True)
    (folder / "checkpoint-1/weights").write_text("1")
    state = carry.State(bucket, folder)
    state.put()
    pack = carry.tarfile.TarFile.add

    def add(archive, name, *words):
        pack(archive, name, *words)
        Path(name).write_text(Path(name).read_text() + "+")

    (folder / "checkpoint-1/weights").write_text("22")
    monkeypatch.setattr(carry.tarfile.TarFile, "add", add)
    state.put()
    shutil.rmtree(folder)
    carry.State(bucket, folder).get()
    assert (folder / "checkpoint-1/weights").read_text() == "1"
    assert [path for path in folder.parent.iterdir() if path != folder] == []


def test_a_lost_connection_ends_no_command(bucket, tmp_path, monkeypatch, capsys):
    """Its state is stored when the connection is back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(carry, "EVERY", 0.05)
    folder = Path("checkpoints/stage")
    folder.mkdir(parents=True)
    (folder / "weights").write_text("1")
    state, failures = carry.State(bucket, folder), []
    upload = type(bucket.bucket).upload_fileobj

    def fail_once(self, *words):
        if not failures:
            failures.append(words)
            raise boto3.exceptions.S3UploadFailedError("connection reset")
        upload(bucket.bucket, *words)

    monkeypatch.setattr(type(bucket.bucket), "upload_fileobj", fail_once, raising=False)
    monkeypatch.setattr(signal, "signal", lambda *words: None)  # those of the tests stay
    assert carry.run(["sleep", "1"], state) == 0
    assert "warning: not stored: checkpoints/stage.tar: connection reset" in capsys.readouterr().err
    assert "checkpoints/stage.tar" in names(bucket)


@pytest.mark.parametrize(
    ("provider", "url", "line"),
    [
        ("fs", "/shared", "--default-storage-provider: expected s3, got fs"),
        ("s3", "encore/run", "--default-storage-prefix: expected s3://BUCKET/FOLDER, got encore/run"),
        ("s3", "", "--default-storage-prefix: expected s3://BUCKET/FOLDER, got nothing"),
    ],
)
def test_another_storage_is_told(provider, url, line):
    class Settings:
        default_storage_provider, default_storage_prefix = provider, url
        local_storage_prefix = Path(".snakemake/storage")

    with pytest.raises(UserError) as mistake:
        storage.of(Settings)
    assert mistake.value.lines == [line]


@pytest.mark.slow
def test_a_bucket_that_cannot_be_reached_is_told_in_one_line(project, s3):
    done = project.snakemake(
        *IN_BUCKET, **s3 | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    )
    assert done.returncode == 2
    assert project.error(done).startswith(
        f'error: {BUCKET}: Could not connect to the endpoint URL: "http://127.0.0.1:9'
    )
