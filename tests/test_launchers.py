"""The files for clouds: their own tools read them, and what they run is planned. No cloud is asked."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from string import Template

import dry_runs
import pytest
import yaml

ROOT = Path(__file__).parents[1]
TASK = ROOT / "profiles/skypilot/task.yaml"
JOB = ROOT / "profiles/hf_jobs/job.py"


def hf_command() -> list[str]:
    """The words of the command that the file for Hugging Face Jobs says."""
    text = re.search(
        r"^ +(hf jobs uv run .*?)\n\n", JOB.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert text
    return shlex.split(text[1].replace("\\\n", " "))


@pytest.mark.slow
def test_hf_reads_the_job(tmp_path):
    (tmp_path / "profiles").symlink_to(ROOT / "profiles")
    (tmp_path / "dist").mkdir()
    _, *words = hf_command()
    at = words.index("run") + 1
    command = [
        Path(sys.executable).with_name("hf"),
        *words[:at],
        "--dry-run",
        "--namespace",
        "ORG",
        *words[at:],
    ]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "HF_TOKEN": "hf_none"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Job not submitted" in done.stdout
    assert re.search(r"args +r1_zero --scale small-gpu --seeds 1", done.stdout)


@pytest.mark.slow
def test_what_the_clouds_run_is_planned():
    task = yaml.safe_load(TASK.read_text(encoding="utf-8"))
    values = {name: str(value) for name, value in task["envs"].items()} | {"SKYPILOT_NUM_GPUS_PER_NODE": "1"}
    sky = Template(task["run"].splitlines()[-1]).substitute(values)
    words = hf_command()
    recipe, _, scale, _, seeds = words[words.index("profiles/hf_jobs/job.py") + 1 :]
    hf = f"snakemake --cores all {recipe} --config scale={scale} seeds={seeds}"
    for command, (status, text) in dry_runs.of([sky, hf], ROOT).items():
        assert status == 0, f"{command}\n{text}"


def test_the_job_and_the_manual_name_the_wheel_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for file in (JOB, ROOT / "docs/install.md"):
        wheels = re.findall(r"encore_rl-[^\s`\"]+\.whl", file.read_text(encoding="utf-8"))
        assert {*wheels} == {f"encore_rl-{version}-py3-none-any.whl"}, file


@pytest.mark.slow
def test_skypilot_reads_the_task():
    sky = pytest.importorskip("sky", reason="SkyPilot is of no extra: it is large")
    task = sky.Task.from_yaml(str(TASK))
    assert {next(iter(each.accelerators)) for each in task.resources} == {"L4", "A10G", "A100"}
