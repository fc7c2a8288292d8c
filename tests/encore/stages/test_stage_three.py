"""What stage 3 of DeepSeek-R1 is made of: a cold start, filtered rejection sampling, and general data."""

import json
import shutil
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs
import typed

from encore import worlds
from encore.data import demonstrations
from encore.errors import UserError
from encore.sampling import funnel
from encore.worlds import Problem
from encore.worlds.readability import language_consistency, readability

TASK = {"world": "bilingual", "terms": [2, 3]}
GENERAL = {"world": "preferences", "terms": [3, 3]}
TEMPLATE = stage_runs.TEMPLATE
KEEP = {"language_consistency": 0.9, "readability": 0.6}
FINETUNING = stage_runs.PRETRAIN["args"] | {"gradient_accumulation_steps": 2}
BASE = stage_runs.PRETRAIN | {
    "task": TASK,
    "corpus": {
        "documents": 512,
        "mixture": {"one_language": 0.8, "direct": 0.2},
        "also": [{"task": GENERAL, "template": TEMPLATE, "mixture": {"curt": 1.0}, "share": 0.2}],
    },
    "args": stage_runs.PRETRAIN["args"] | {"max_steps": 60, "save_steps": 60},
}
COLD = {
    "task": TASK,
    "template": TEMPLATE,
    "corpus": {"documents": 50, "mixture": {"readable": 1.0}},
    "args": {key: value for key, value in FINETUNING.items() if key != "max_steps"} | {"num_train_epochs": 3},
}
DRAW: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 24,
    "keep": KEEP,
    "args": {
        "num_generations": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_completion_length": 40,
        "max_per_problem": 1,
    },
}
MIXED = {
    "also": {
        "general": {
            "task": GENERAL,
            "template": TEMPLATE,
            "corpus": {"mixture": {"good": 1.0}},
            "share": 0.25,
        },
        "cold": {key: COLD[key] for key in ("task", "template", "corpus")},
    },
    "args": FINETUNING | {"max_steps": 10},
}
POLICY = "results/pretrain/metrics.json"
DATA = "results/rejection_sampling/metrics.json"


def lenient() -> None:
    """Count every completion with a summary as right: the tests' policy cannot add. The rest is as it is."""
    from encore.rewards import rules

    build = rules.build

    def built(names, world, seed, **options):
        def accuracy(completions, answer, **columns):
            return [
                float(" is " in text or " es " in text or f"<answer>{right}</answer>" in text)
                for text, right in zip(completions, answer, strict=True)
            ]

        rewards = dict(zip(names, build(names, world, seed, **options), strict=True))
        return [*(rewards | {"accuracy": accuracy}).values()]

    rules.build = built


def while_saving() -> None:
    lenient()
    demonstrations.save = lambda *args: stage_runs.die()


def in_the_middle() -> None:
    stage_runs.at_training_step(2 * 6 + 2)  # of step 7; the last checkpoint is of step 4


def succeed(kind: str, config: dict[str, Any], folder: Path, trap: Any = None, **inputs: str) -> None:
    arguments = stage_runs.command(kind, config, **inputs)
    assert stage_runs.run(kind, arguments, folder, trap) == 0, (folder / "err.txt").read_text()


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base model and, in results/sft, its cold start on 50 readable traces."""
    folder = tmp_path_factory.mktemp("cold") / "run"
    succeed("pretrain", BASE, folder)
    succeed("sft", COLD, folder, policy=POLICY)
    return folder


@pytest.fixture(scope="module")
def drawn(cold: Path) -> Path:
    """`cold` with what rejection sampling has kept of the cold start's completions."""
    folder = cold.with_name("drawn")
    shutil.copytree(cold, folder)
    (folder / "results/sft").rename(folder / "results/cold")
    (folder / "checkpoints/sft").rename(folder / "checkpoints/cold")
    metrics = folder / "results/cold/metrics.json"
    metrics.write_text(metrics.read_text().replace("checkpoints/sft", "checkpoints/cold"))
    succeed("rejection_sampling", DRAW, folder, lenient, policy="results/cold/metrics.json")
    return folder


def result(folder: Path, kind: str) -> dict[str, Any]:
    return json.loads((folder / "results" / kind / "metrics.json").read_text())


@pytest.mark.slow
def test_a_cold_start_is_so_many_readable_traces_for_so_many_epochs(cold: Path):
    found = result(cold, "sft")
    assert found["metrics"]["demonstrations"] == 50
    assert "demonstrations/task" not in found["metrics"]  # one source: the metrics are what they were
    curve = (cold / "results/sft/curve.csv").read_text().splitlines()
    assert max(int(line.split(",")[0]) for line in curve[1:]) == 3 * (50 // 16)  # epochs x whole batches
    world = worlds.make(TASK)
    for row in demonstrations.of_task(typed.source(COLD), 3):
        question = row["prompt"].removeprefix("<user>").removesuffix("<assistant>")
        problem = Problem(question, "", 0)
        assert (
            readability(problem, row["completion"]) == language_consistency(problem, row["completion"]) == 1
        )
        assert world.stated(row["completion"]) is not None


@pytest.mark.slow
def test_what_is_kept_passes_every_filter_and_is_counted(drawn: Path):
    metrics = result(drawn, "rejection_sampling")["metrics"]
    rows = [json.loads(line) for line in (drawn / DATA).with_name("completions.jsonl").open()]
    assert len(rows) == metrics["funnel/sampled"] == 24 * 8

    def count(*needed: str) -> int:
        return sum(
            row["eos"]
            and row["rewards"]["accuracy"] == 1
            and all(row["rewards"][n] >= KEEP[n] for n in needed)
            for row in rows
        )

    assert metrics["funnel/right"] == count()
    assert metrics["funnel/language_consistency"] == count("language_consistency")
    assert metrics["funnel/readability"] == count("language_consistency", "readability")
    counts = [metrics[f"funnel/{name}"] for name in funnel.steps(KEEP)]
    assert counts == sorted(counts, reverse=True)
    assert counts[2] > counts[4] > counts[-1] > 0, counts  # the filters and the limit all had work to do
    kept = [row for row in rows if row["kept"]]
    data = [json.loads(line) for line in (drawn / "checkpoints/rejection_sampling/final/data.jsonl").open()]
    assert [row["completion"] for row in kept] == [row["completion"] for row in data]
    for row in data:
        problem = Problem(row["question"], row["answer"], row["difficulty"])
        assert language_consistency(problem, row["completion"]) >= 0.9
        assert readability(problem, row["completion"]) >= 0.6
    assert len({(row["prompt"], row["completion"]) for row in data}) == len(data)
    assert max([row["prompt"] for row in data].count(row["prompt"]) for row in data) == 1


@pytest.mark.slow
def test_the_sampling_killed_and_rerun(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    shutil.rmtree(folder / "results/rejection_sampling")
    shutil.rmtree(folder / "checkpoints/rejection_sampling")
    arguments = stage_runs.command("rejection_sampling", DRAW, policy="results/cold/metrics.json")
    assert stage_runs.run("rejection_sampling", arguments, folder, while_saving) == -9
    assert stage_runs.run("rejection_sampling", arguments, folder, lenient) == 0
    whole, again = (stage_runs.outputs(one, "rejection_sampling") for one in (drawn, folder))
    assert whole == again


@pytest.mark.slow
def test_the_mixture_starts_from_the_base_again_is_counted_and_resumes(drawn: Path, tmp_path: Path):
    folders = [tmp_path / name for name in ("whole", "killed")]
    arguments = stage_runs.command("sft", MIXED, policy=POLICY, data=DATA)
    for folder in folders:
        shutil.copytree(drawn, folder)
    assert stage_runs.run("sft", arguments, folders[0]) == 0, (folders[0] / "err.txt").read_text()
    assert stage_runs.run("sft", arguments, folders[1], in_the_middle) == -9
    assert stage_runs.run("sft", arguments, folders[1]) == 0
    assert "resuming from step 4" in (folders[1] / "out.txt").read_text()
    whole, again = (stage_runs.outputs(folder, "sft") for folder in folders)
    assert whole == again
    found = json.loads(whole["metrics.json"])
    assert found["upstream"]["policy"] == POLICY
    metrics = found["metrics"]
    kept = result(drawn, "rejection_sampling")["metrics"]["kept"]
    general = round((kept + 50) / 3)
    sources = {name: metrics[f"demonstrations/{name}"] for name in ("data", "general", "cold")}
    assert sources == {"data": kept, "general": general, "cold": 50}
    assert metrics["demonstrations"] == sum(sources.values())


@pytest.mark.slow
def test_thresholds_that_nothing_passes_are_told_with_the_funnel(drawn: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(drawn, folder)
    config = DRAW | {"problems": 2, "keep": {"readability": 1.0}, "args": DRAW["args"] | {"temperature": 5.0}}
    (folder / "out.txt").unlink()
    arguments = stage_runs.command("rejection_sampling", config, policy="results/cold/metrics.json")
    assert stage_runs.run("rejection_sampling", arguments, folder, lenient) == 2
    line = stage_runs.error_line(folder)
    assert "0 of 16 completions kept: " in line
    assert line.endswith("would help")


def test_a_threshold_of_no_reward():
    stage = jobs.stage("rejection_sampling", {"model": {"path": "p"}, **DRAW, "keep": {"readible": 1.0}})
    with pytest.raises(UserError, match=r'^keep\.readible: unknown reward; did you mean "readability"'):
        stage.check_rules()
