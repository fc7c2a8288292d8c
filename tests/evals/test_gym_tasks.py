"""A task of reasoning-gym in a recipe: asked of an evaluation and of a stage, and refused for documents."""

import json
import shutil

import pytest
from evaluated import parse
from pydantic import TypeAdapter, ValidationError
from scripted import Scripted

pytest.importorskip("reasoning_gym")

from encore.data import forms, prompts, samples
from encore.recipe.task import CorpusTask, DemonstrationTask, GymTask, QuestionTask
from encore.rewards import rules
from encore.sandbox.pool import Pool
from encore.worlds import make, prompt, sample, split_of
from evals import harness

pytestmark = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")
SUMS = {"reasoning_gym": "chain_sum", "min_terms": 2, "max_terms": 3, "min_digits": 1, "max_digits": 2}
TEMPLATE = "Q: {question}\nA: "


def test_an_evaluation_asks_held_out_questions_and_the_library_scores_each_sample(heldout):
    spec = heldout | {"task": SUMS, "template": TEMPLATE}
    drawn = sample(make(SUMS), spec["items"], seed=0, split="test")
    answers = {prompt(TEMPLATE, problem.question): problem.answer for problem in drawn}
    said = {True: "<answer>{}</answer>", False: "<answer>{}9</answer>"}
    lm = Scripted(lambda text, n: said[n % 2 == 0].format(answers[text]))
    (task,) = parse({"tasks": {"heldout": spec}})
    rows = harness.sample(task, lm, seed=0)
    assert {split_of(row["question"]) for row in rows} == {"test"}
    for row in rows:
        assert row["correct"] == [n % 2 == 0 for n in range(spec["samples"])]
        assert make(SUMS).verify(samples.problem(row), f"<answer>{row['answer']}</answer>")


def test_an_evaluation_scores_a_sample_of_every_item_in_one_program(heldout, monkeypatch):
    spec = heldout | {
        "task": {**SUMS, "max_digits": 3},
        "template": TEMPLATE,
        "items": 16,
        "samples": 4,
        "k": [1],
    }
    (task,) = parse({"tasks": {"heldout": spec}})
    programs, run = [], Pool.run
    monkeypatch.setattr(Pool, "run", lambda pool, jobs: programs.extend(jobs) or run(pool, jobs))
    rows = harness.sample(task, Scripted(lambda text, n: f"<answer>{n}</answer>"), seed=0)
    scoring = [program for program in programs if "task.score" in program.calls[0]]
    assert len(scoring) == spec["samples"]
    assert sum(len(program.calls) for program in scoring) == spec["items"] * spec["samples"]
    assert all(len(row["correct"]) == spec["samples"] for row in rows)


def test_a_stage_learns_from_training_questions_by_the_librarys_scorer(tmp_path):
    task = TypeAdapter(QuestionTask).validate_python(SUMS)
    assert isinstance(task, GymTask)
    rows = prompts.of_task(task, forms.plain(TEMPLATE), 8, 0).to_list()
    assert {split_of(row["question"]) for row in rows} == {"train"}
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    columns["prompts"] = columns.pop("prompt")
    accuracy, partial = rules.build(["accuracy", "partial"], task.make_world())
    texts = [f"<answer>{row['answer']}</answer>" for row in rows]
    assert accuracy(completions=texts, **columns) == partial(completions=texts, **columns) == [1.0] * 8
    assert accuracy(completions=[*texts[1:], texts[0]], **columns) != [1.0] * 8
    kept = [{**row, "completions": ["x"], "tokens": [1], "truncated": [False]} for row in rows]
    samples.save(kept, tmp_path / "final")
    saved = [json.loads(line) for line in (tmp_path / "final/samples.jsonl").read_text().splitlines()]
    assert make(SUMS).verify(samples.problem(saved[0]), texts[0])


@pytest.mark.parametrize("kind", [CorpusTask, DemonstrationTask])
def test_documents_are_refused_in_one_line(kind):
    with pytest.raises(
        ValidationError, match="reasoning-gym has questions and answers, and writes no corpus"
    ):
        TypeAdapter(kind).validate_python(SUMS)
