"""The manual keeps its word: each command of a page runs in its order; those of Snakemake as dry runs.

Before a command runs, what the page shows above it is done: modules are written, recipes are edited.
"""

import csv
import json
import lzma
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from subprocess import PIPE
from urllib.request import urlopen

import dry_runs
import interrupts
import pytest

from analysis.verdicts.claims import VERDICTS
from encore.worlds.environment import LIBRARIES

ROOT = Path(__file__).parents[1]
PLANNED = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/commands.md"))
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r" *# (?:under (?P<key>\w+): of )?(?P<recipe>\S+\.yaml)")  # begins a part of a recipe
LINKED = ("Snakefile", "profiles", "analysis", "encore", "evals", "snakemake_logger_plugin_encore")


def commands(page: Path) -> list[str]:
    """The commands of a page, a line each."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [line for kind, text in blocks if kind == "sh" for line in text.splitlines() if line]


def edit(recipe: Path, part: str, key: str | None) -> None:
    """Add a part of a recipe to the end of a section, or else put its sections in place of the recipe's."""
    sections = re.split(r"^(?=\w+:)", recipe.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if key:
        (at,) = (n for n, section in enumerate(sections) if section.startswith(f"{key}:"))
        sections[at] = f"{sections[at].rstrip()}\n{part}\n"
    else:
        shown = tuple(re.findall(r"^\w+:", part, re.MULTILINE))
        sections = [*(section for section in sections if not section.startswith(shown)), part]
    recipe.write_text("".join(sections), encoding="utf-8")


def files(page: Path) -> dict[str, str]:
    """The modules that a page shows whole: they begin with a comment that names the file."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return {text.split()[1]: text for kind, text in blocks if kind == "py"}


def served(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that serves a page until Ctrl-C: the page is asked for once, then it is ended so."""
    env = os.environ | {"PYTHONPATH": str(folder)}
    words = [sys.executable, "-m", *shlex.split(command), "--port", "0"]
    heed = interrupts.heed
    process = subprocess.Popen(
        words, cwd=folder, env=env, stdout=PIPE, stderr=PIPE, text=True, preexec_fn=heed
    )
    line = process.stdout.readline()
    if address := re.search(r"http://\S+", line):
        with urlopen(address[0], timeout=60) as page:
            assert page.status == 200
        process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(words, process.returncode, line + stdout, stderr)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    if words[:2] == ["encore", "watch"]:
        return served(command, folder)
    python = shlex.quote(sys.executable)
    if words[0] == "encore":
        command = f"{python} -m {command}"
    elif words[0] == "python":
        command = python + command.removeprefix("python")
    else:
        assert words[0] == "printf", f"{command}: no kind of command that is run here"
    env = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        command, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, checkpoint):
    """The checkout's folder, but with results of its own: a stage of R1-Zero, by a model of a layer."""
    folder = tmp_path_factory.mktemp("docs")
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "recipes", folder / "recipes")  # pages edit them
    made = json.loads(checkpoint.read_text())
    stage = folder / "results/r1_zero/cpu/base-recipe/seed1/grpo"
    stage.mkdir(parents=True)
    asked = {"kind": "grpo", "config": {"rewards": {"accuracy": 1.0}}, "seed": 1, "inputs": {}}
    (stage / "metrics.json").write_text(json.dumps(made | asked))
    (stage / "provenance.json").write_text(json.dumps({"commit": "abc", "steps": 3, "tokens": 9}))
    return folder


@pytest.fixture
def servers():
    """The servers that a page starts, which run until its end."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.terminate()
        process.wait()


def serve(command: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a server of a page, and wait until its port is open."""
    words = shlex.split(command)
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=folder, stderr=subprocess.DEVNULL)
    address = ("localhost", int(words[words.index("--port") + 1]))
    for _ in range(600):
        assert process.poll() is None, f"{command}: it ended"
        with suppress(OSError), socket.create_connection(address, 1):
            break
        time.sleep(0.1)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_every_command_runs(page, folder, servers):
    if page.stem in LIBRARIES:
        pytest.importorskip(page.stem)
    for name, text in files(page).items():
        (folder / name).write_text(text, encoding="utf-8")
    plans: list[str] = []
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "yaml" and (shown := SHOWN.match(text)):
            plan(plans, folder)
            edit(folder / shown["recipe"], text, shown["key"])
        for command in filter(None, text.splitlines() if kind == "sh" else ()):
            if f"`{command}`" in PLANNED:
                continue  # test_readme plans it
            if command.startswith("snakemake "):
                plans.append(command)
                continue
            if command.startswith("uvicorn "):
                servers.append(serve(command, folder))
                continue
            plan(plans, folder)
            done = run(command, folder)
            assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    plan(plans, folder)


def plan(commands: list[str], folder: Path) -> None:
    """Plan what the commands of Snakemake would do, all in one process, and empty the list."""
    for command, (status, text) in dry_runs.of(commands, folder).items() if commands else ():
        assert status == 0, f"{command}\n{text[-2000:]}"
    commands.clear()


def test_modules_that_are_shown_do_what_is_said_of_them(tmp_path, monkeypatch):
    from trl import GRPOConfig

    from encore import worlds
    from encore.objectives import own
    from encore.rewards import rules, verifiers

    monkeypatch.chdir(tmp_path)
    for page in PAGES:
        for name, text in files(page).items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    world = worlds.make({"world": "parity:Parity", "largest": 99})
    problems = worlds.sample(world, 8, 0, "test")
    stated = "<think></think><answer>{}</answer>"
    assert all(world.verify(one, stated.format(one.answer)) for one in problems)
    assert not any(world.verify(one, stated.format("neither")) for one in problems)
    documents = worlds.corpus(world, {"direct": 1.0}, 50, 0, "<user>{question}<assistant>")
    tokenizer = worlds.tokenizer([world])
    assert not any(tokenizer.unk_token_id in tokenizer("".join(one))["input_ids"] for one in documents)
    (short,) = rules.build(["taste:short"], None)
    columns = {"question": ["1"] * 2, "answer": ["1"] * 2}
    assert short(prompts=["1"] * 2, completions=["", "a" * 100], **columns) == [1.0, 0.5]
    own.try_out(own.objective("calm:loss"), GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False))
    verify = verifiers.verifier("taste:right")
    assert verify(problems[0], stated.format(problems[0].answer))


def test_commands_are_marked_as_such():
    """No command hides in a block that is not run: what is no `sh` begins with none."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        others = [body for kind, body in BLOCK.findall(text) if kind != "sh"]
        indented = re.findall(r"(?<=\n\n) {4}[^\n]*", BLOCK.sub("", text))
        words = {
            line.split()[0] for body in (*others, *indented) for line in body.splitlines() if line.strip()
        }
        assert not words & {"snakemake", "encore", "pip"}, page


def test_every_verdict_is_explained():
    table = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    assert [verdict for verdict in VERDICTS if not re.search(rf"^\|.*{verdict}", table, re.MULTILINE)] == []


def test_the_numbers_of_collapses_are_those_of_the_record():
    text = " ".join((ROOT / "docs/collapse.md").read_text(encoding="utf-8").split())
    record = ROOT / "results/published/r1_zero-cpu"
    rows = [line.split(",") for line in (record / "collapses.csv").read_text().splitlines()]
    collapsed = {row[0]: (row[1], row[2]) for row in rows}
    for arm in ("base-recipe", "format-only", "random"):
        runs, collapses = collapsed[arm]
        assert f"{collapses} of {runs}" in text
    health = (record / "health.csv").read_text()
    for arm, check, measured, said in (
        ("format-only", "entropy", "from 0.188 to 0.098 nats a token", "from 0.188 to 0.098 nats a token"),
        ("random", "entropy", "from 0.220 to 0.201", "from 0.220 to 0.201"),
        ("format-only", "zero_variance", "89.6", "90%"),
        ("random", "accuracy", "accuracy went from 0.215", "accuracy goes from 0.215 to 0.044"),
    ):
        row = next(line for line in health.splitlines() if f"{check},grpo,{arm}," in line)
        assert measured in row
        assert said in text


def test_the_table_of_what_each_change_to_grpo_brings_is_that_of_its_benchmark():
    text = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
    with (ROOT / "results/published/grpo_ladder.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["pair"] == "median"]
    for row in rows:
        speed, memory, learned, scored = (
            float(row[name])
            for name in ("tokens_per_s", "peak_rss_mb", "positions_learned", "positions_scored")
        )
        assert f"| {row['rung']} | {speed:.2f} x | {memory:.2f} x | {learned:.2f} | {scored:.2f} |" in text


def test_the_table_of_large_plans_is_that_of_its_benchmark():
    text = (ROOT / "docs/slurm.md").read_text(encoding="utf-8")
    grids: dict[tuple[str, str, int], dict[str, float]] = {}
    with (ROOT / "results/published/plan_speed.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            grid = (row["target"], row["seeds"], int(row["jobs"]))
            grids.setdefault(grid, {})[row["metric"]] = float(row["value"])
    for (target, seeds, jobs), took in grids.items():
        measured = f"{took['wall_s']:.0f} | {took['cpu_s']:.0f} | {took['memory_mib']:.0f}"
        assert f"| `{target}` | {seeds} | {jobs:,} | {measured} |" in text
    ends = [(jobs, took) for (target, _, jobs), took in grids.items() if target == "everything"]
    (few, less), *_, (many, more) = ends
    milliseconds = 1000 * (more["cpu_s"] - less["cpu_s"]) / (many - few)
    kib = 1024 * (more["memory_mib"] - less["memory_mib"]) / (many - few)
    assert f"{milliseconds:.1f} milliseconds of a processor and {kib:.0f} KiB for each further job" in text
    assert more["wall_s"] <= 60
    assert more["memory_mib"] <= 2048


def test_the_numbers_of_the_self_rewarding_collapse_are_those_of_its_record():
    text = (ROOT / "docs/collapse.md").read_text(encoding="utf-8")
    with lzma.open(ROOT / "results/published/iterative-cpu/numbers.csv.xz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["arm"] == "base-recipe"]

    def mean(node: str, metric: str) -> float:
        return fmean(float(row["value"]) for row in rows if (row["node"], row["metric"]) == (node, metric))

    gains = mean("round_1", "heldout/gold") - mean("sft", "heldout/gold")
    assert f"brings {gains:.2f} of gold reward" in " ".join(text.split())
    assert mean("round_3", "heldout/gold") < mean("sft", "heldout/gold")
    assert f"it is {mean('round_3', 'heldout/kl'):.0f} nats away" in text
