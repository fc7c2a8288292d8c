"""What a grpo stage learns from: one long prompt, or one that an evaluation has, does not stop it."""

import dataclasses
import json
from pathlib import Path

import datasets
import jobs
import pytest

from encore import worlds
from encore.stages import setup
from encore.stages.job import typed

ASKED = "one two three four five six seven eight nine ten eleven twelve thirteen?"
QUESTIONS = ["1+1=", "2+" * 60 + "2=", "2+2=", ASKED]


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for name, questions in (("mine", QUESTIONS), ("held", [ASKED])):
        lines = [json.dumps({"q": question, "a": "2"}) + "\n" for question in questions]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    mine, held = ({"file": str(tmp_path / f"{name}.jsonl"), "question": "q"} for name in ("mine", "held"))
    task = mine | {"answer": "a", "verifier": "math"}
    return {"task": task, "template": "{question}", "rewards": {"accuracy": 1.0}}, {"heldout": held}


def tasks(config):
    tokenizer = worlds.tokenizer([worlds.make({"world": "chain"})])
    stage, evaluated = typed("grpo", config)
    job = dataclasses.replace(jobs.job({}, Path()), evaluated=evaluated)
    return setup.tasks_of(stage, job, tokenizer, {0: 8}, {}, ())


def test_long_prompts_are_left_out_and_counted(config):
    own, _ = config
    (task,) = tasks(own)
    assert task.problems["question"][:] == QUESTIONS
    assert setup.skipped([task]) == {}
    (task,) = tasks(own | {"longest_prompt": 80})
    assert task.problems["question"][:] == ["1+1=", "2+2=", ASKED]
    assert setup.skipped([task]) == {"skipped/long": 1}


def test_prompts_of_an_evaluation_are_left_out_and_counted(config):
    own, held = config
    (task,) = tasks(own | {"longest_prompt": 80, "decontaminate": held})
    assert task.problems["question"][:] == ["1+1=", "2+2="]
    assert [(one["check"], one["value"]) for one in task.checks] == [("contaminated", 1.0)]


def test_each_domain_has_its_own_longest_prompt(config):
    own, held = config
    other = {
        "task": {"world": "chain"},
        "template": "{question}",
        "rewards": {"accuracy": 1.0},
        "problems": 8,
    }
    domains = {"sums": own | {"share": 0.5, "longest_prompt": 80}, "chain": other | {"share": 0.5}}
    first, second = tasks({"domains": domains, "decontaminate": held})
    assert setup.skipped([first, second]) == {"skipped/long/sums": 1}
    assert (len(first.checks), len(second.checks)) == (1, 0)
