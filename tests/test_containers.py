"""The recipes of two containers, and the workflow that publishes images of one.

Both were built, from Debian's Python in place of the image that they name (docs/install.md). Here a shell
runs their commands, the workflow's and the offline build's, with programs that only say how they were called.
"""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCKER = (ROOT / "Dockerfile").read_text(encoding="utf-8")
APPTAINER = (ROOT / "apptainer.def").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/images.yml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
PROGRAMS = ("apt-get", "pip", "encore", "rm", "python", "git", "useradd", "mkdir", "chmod", "docker", "sudo")


def section(name: str) -> str:
    """The script of a section of apptainer.def."""
    return re.search(rf"^%{name}\n(.*?)(?=^%|\Z)", APPTAINER, re.MULTILINE | re.DOTALL)[1]


def build(kind: str, torch: str) -> str:
    """The shell that builds the image, with its argument put in as the builder would."""
    if kind == "apptainer":
        return section("post").replace("{{ torch }}", torch).replace("cd /encore", "cd .")
    joined = DOCKER.replace("\\\n", " ")
    return f"TORCH={torch}\n" + "\n".join(re.findall(r"^RUN (.*)$", joined, re.MULTILINE))


def called(script: str, folder: Path, *words: str, shell: str = "sh", **environment: str) -> list[str]:
    """The calls that a script makes, in order; it must end well."""
    folder.mkdir(exist_ok=True)
    for name in PROGRAMS:
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (folder / name).chmod(0o755)
    env = os.environ | environment | {"PATH": f"{folder}:{os.environ['PATH']}"}
    command = [shell, "-euc", script, shell, *words]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("torch", ["cpu", "cuda"])
def test_both_install_what_the_readme_says(tmp_path, torch):
    docker = called(build("docker", torch), tmp_path)
    apptainer = called(build("apptainer", torch), tmp_path)
    assert docker[: len(apptainer)] == [re.sub(r"-e /encore", "-e .", line) for line in apptainer]
    (pinned,) = [name for name in PROJECT["dependencies"] if name.startswith("torch==")]
    index = " --index-url https://download.pytorch.org/whl/cpu"
    assert f"pip install {pinned}{index}" in README
    assert docker.pop(2).startswith("rm -rf /var/lib/apt/lists/")
    # Triton compiles at the first loss on a GPU; Python's headers are in the image
    compiler, extras = (
        ("", "[kubernetes]") if torch == "cpu" else (" gcc libc6-dev", "[kubernetes,qlora,liger,vllm]")
    )
    assert docker[:4] == [
        "apt-get update",
        f"apt-get install -y --no-install-recommends bubblewrap git{compiler}",
        f"pip install --no-cache-dir {pinned}{index if torch == 'cpu' else ''}",
        f"pip install --no-cache-dir -e .{extras}",
    ]


def test_whoever_runs_an_image_can_write_where_it_starts_and_git_trusts_the_code(tmp_path):
    """Commits of a run are read by git, which refuses a clone of another user."""
    words = [line.split() for line in called(build("docker", "cpu"), tmp_path)]
    *_, folder = re.findall(r"^WORKDIR (.*)$", DOCKER, re.MULTILINE)
    code = re.search(r"^WORKDIR (.*)\n(?:.*\n)*COPY \. \.", DOCKER, re.MULTILINE)[1]
    home = re.search(r"^ENV HOME=(\S+)", DOCKER, re.MULTILINE)[1]
    assert ["git", "config", "--system", "safe.directory", code] in words
    assert ["chmod", "1777", folder, home] in words
    user = re.search(r"^USER (\d+):\d+$", DOCKER, re.MULTILINE)[1]
    assert int(user) > 0
    assert ["useradd", "--uid", user, "--create-home", Path(home).name] in words


@pytest.mark.parametrize("kind", ["docker", "apptainer"])
def test_one_for_a_gpu_has_every_extra_that_the_manual_of_a_gpu_names(tmp_path, kind):
    """It says that a container has all of it."""
    manual = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    named = {*re.findall(r"'\.\[(\w+)\]'", manual)}
    installed = re.search(r"\[([\w,]+)\]$", "\n".join(called(build(kind, "cuda"), tmp_path)), re.MULTILINE)
    assert installed
    assert named | {"kubernetes"} == {*installed[1].split(",")}  # a pod of Kubernetes runs it too


def test_both_begin_with_the_python_that_the_project_asks_for():
    images = [re.search(r"^FROM (.*)$", DOCKER, re.MULTILINE)[1]]
    images.append(re.search(r"^From: (.*)$", APPTAINER, re.MULTILINE)[1])
    assert images == [f"python:{PROJECT['requires-python'].removeprefix('>=')}-slim"] * 2


def test_both_run_the_quickstart_or_what_they_are_told(tmp_path):
    manual = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    command = "encore run r1_zero --quickstart"
    assert f"then `{command}`" in manual
    words = yaml.safe_load(re.search(r"^CMD (.*)$", DOCKER, re.MULTILINE)[1])
    assert " ".join(words) == command
    assert called(section("runscript"), tmp_path) == [command]
    assert called(section("runscript"), tmp_path, "echo", "hello") == ["hello"]


def test_what_is_copied_is_what_git_has():
    """No results but the published ones, no checkpoint, no cache; and all that an installation reads."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".snakemake", "checkpoints", "results/*", "!results/published"} <= {*ignored}
    kept = {"Snakefile", "pyproject.toml", "README.md", "LICENSE", "recipes", "encore", "profiles", ".git"}
    assert not kept & {*ignored}
    assert re.search(r"^COPY \. \.\n.*pip install [^\n]*-e", DOCKER, re.MULTILINE | re.DOTALL)


def test_without_a_registry_the_committed_dockerfile_is_built_with_the_pinned_torch(tmp_path):
    """The stand-in of buildah says that it has the base, so debootstrap is not called."""
    saying = '#!/bin/sh\n[ $1 != build ] || for last; do :; done; test ! "$last" || ls $last\n'
    (tmp_path / "buildah").write_text(saying)
    (tmp_path / "pip").write_text('#!/bin/sh\nfor last; do :; done\n[ $1 != download ] || echo "$last"\n')
    for name in ("buildah", "pip"):
        (tmp_path / name).chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = ROOT / "tests/containers/offline_build.sh"
    done = subprocess.run([script], env=env, capture_output=True, text=True, check=True)
    torch, *context = done.stdout.splitlines()
    assert torch in PROJECT["dependencies"]
    committed = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    assert {*context} == {name for name in committed.stdout.splitlines() if not name.startswith(".")}


def test_only_a_tag_publishes_and_actions_are_pinned_to_commits():
    jobs = WORKFLOW["jobs"]
    assert WORKFLOW["permissions"] == {}
    assert [name for name, job in jobs.items() if "write" in job["permissions"].values()] == ["publish"]
    assert jobs["publish"]["if"] == "github.event_name == 'push'"
    assert {*WORKFLOW[True]["push"]} == {"tags"}  # YAML 1.1 reads the key `on` as True
    actions = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert actions
    assert all(re.search(r"@[0-9a-f]{40}$", action) for action in actions)


@pytest.mark.parametrize("row", WORKFLOW["jobs"]["publish"]["strategy"]["matrix"]["include"])
def test_the_workflow_builds_and_pushes_each_image_under_its_own_name(tmp_path, row):
    steps = [step for step in WORKFLOW["jobs"]["publish"]["steps"] if step.get("name") in ("Build", "Push")]
    names = {
        "GITHUB_REPOSITORY": "Some/Encore",
        "GITHUB_REF_NAME": "v1.2",
        "GITHUB_ACTOR": "ann",
        "TOKEN": "t",
    }
    script = "\n".join(step["run"] for step in steps)
    torch, suffix = row["torch"], row["suffix"]
    calls = called(script, tmp_path, shell="bash", TORCH=torch, SUFFIX=suffix, **names)
    image = f"ghcr.io/some/encore:v1.2{'-cuda' if torch == 'cuda' else ''}"
    assert calls[0] == f"docker build -t encore --build-arg TORCH={torch} ."
    assert calls[-2:] == [f"docker tag encore {image}", f"docker push {image}"]
