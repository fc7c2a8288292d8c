"""The two recipes of a container. They were never built, for want of a registry; what they do is held.

Their commands are run by a shell in which apt-get, pip and snakemake only say how they were called.
"""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKER = (ROOT / "Dockerfile").read_text(encoding="utf-8")
APPTAINER = (ROOT / "apptainer.def").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def section(name: str) -> str:
    """The script of a section of apptainer.def."""
    return re.search(rf"^%{name}\n(.*?)(?=^%|\Z)", APPTAINER, re.MULTILINE | re.DOTALL)[1]


def build(kind: str, torch: str) -> str:
    """The shell that builds the image, with its argument put in as the builder would."""
    if kind == "apptainer":
        return section("post").replace("{{ torch }}", torch)
    joined = DOCKER.replace("\\\n", " ")
    return f"TORCH={torch}\n" + "\n".join(re.findall(r"^RUN (.*)$", joined, re.MULTILINE))


def called(script: str, folder: Path, *words: str) -> list[str]:
    """The calls that a script makes, in order; it must end well."""
    folder.mkdir(exist_ok=True)
    for name in ("apt-get", "pip", "snakemake", "rm"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (folder / name).chmod(0o755)
    env = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    command = ["sh", "-euc", script, "sh", *words]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("torch", ["cpu", "cuda"])
def test_both_install_what_the_readme_says(tmp_path, torch):
    docker = called(build("docker", torch), tmp_path)
    apptainer = called(build("apptainer", torch), tmp_path)
    assert docker == [line.replace(" /encore", " .") for line in apptainer]
    (pinned,) = [one for one in PROJECT["dependencies"] if one.startswith("torch==")]
    index = " --index-url https://download.pytorch.org/whl/cpu"
    assert f"pip install {pinned}{index}" in README
    assert docker.pop(2).startswith("rm -rf /var/lib/apt/lists/")
    # Triton compiles at the first loss on a GPU; Python's headers are in the image
    compiler, extras = ("", "") if torch == "cpu" else (" gcc libc6-dev", "[qlora,liger,vllm]")
    assert docker == [
        "apt-get update",
        f"apt-get install -y --no-install-recommends bubblewrap git{compiler}",
        f"pip install --no-cache-dir {pinned}{index if torch == 'cpu' else ''}",
        f"pip install --no-cache-dir -e .{extras}",
    ]


@pytest.mark.parametrize("kind", ["docker", "apptainer"])
def test_one_for_a_gpu_has_every_extra_that_the_manual_of_a_gpu_names(tmp_path, kind):
    """It says that a container has all of it."""
    manual = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    named = {*re.findall(r"'\.\[(\w+)\]'", manual)}
    installed = re.search(r"\[([\w,]+)\]$", called(build(kind, "cuda"), tmp_path)[-1])
    assert installed
    assert named == {*installed[1].split(",")}


def test_both_begin_with_the_python_that_the_project_asks_for():
    images = [re.search(r"^FROM (.*)$", DOCKER, re.MULTILINE)[1]]
    images.append(re.search(r"^From: (.*)$", APPTAINER, re.MULTILINE)[1])
    assert images == [f"python:{PROJECT['requires-python'].removeprefix('>=')}-slim"] * 2


def test_both_run_the_quickstart_or_what_they_are_told(tmp_path):
    assert "pip install -e . && snakemake --cores" in README
    assert 'CMD ["snakemake", "--cores"]' in DOCKER
    run = section("runscript").replace("cd /encore", f"cd {tmp_path}")
    assert called(run, tmp_path) == ["snakemake --cores"]
    assert called(run, tmp_path, "echo", "told") == ["told"]


def test_what_is_copied_is_what_git_has():
    """No results but the published ones, no checkpoint, no cache; and all that an installation reads."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".snakemake", "checkpoints", "results/*", "!results/published"} <= {*ignored}
    kept = {"Snakefile", "pyproject.toml", "README.md", "LICENSE", "recipes", "encore", "profiles", ".git"}
    assert not kept & {*ignored}
    assert re.search(r"^COPY \. \.\n.*pip install [^\n]*-e", DOCKER, re.MULTILINE | re.DOTALL)
