"""Tasks of lm-eval that score likelihoods, without samples."""

import json

import pytest
from evaluated import task_of, values
from lm_eval_tasks import on_rows
from scripted import Scripted

from encore.recipe import lm_eval_tasks
from evals import evaluate, harness, metrics


class Ranking(Scripted):
    """Finds a continuation as likely as `likelihood(context, continuation)`."""

    def __init__(self, likelihood):
        super().__init__(lambda text, n: "")
        self.likelihood = likelihood

    def loglikelihood(self, requests, **kwargs):
        return [(self.likelihood(*request.args), False) for request in requests]


def test_gpqa_is_ranked_by_likelihood(tmp_path):
    rows = [
        {
            "Question": f"Q{n}",
            "Correct Answer": "yes",
            **{f"Incorrect Answer {i}": f"no {i}" for i in (1, 2, 3)},
        }
        for n in range(4)
    ]
    folder = on_rows(tmp_path, "gpqa_diamond_zeroshot", {"train": rows})
    task = task_of(lm_eval="gpqa_diamond_zeroshot", metric="acc", items=3)

    def knows(context, continuation):
        """The letter of the right answer where the question is Q0, and else that of a wrong one."""
        letters = {line[4:]: line[:3] for line in context.splitlines() if line.startswith("(")}
        return float(continuation.strip() == letters["yes" if "Q0" in context else "no 1"])

    found = harness.sample(task, Ranking(knows), seed=0, folder=folder)
    assert [row["correct"] for row in found] == [[True], [False], [False]]
    assert values(found, task) == pytest.approx({"accuracy": 1 / 3, "score": 1 / 3})
    assert metrics.summary(found, task.k)["samples"] == 1
    assert found[0]["completions"] == found[0]["votes"] == []
    json.dumps(found, allow_nan=False)


def test_a_likelihood_task_through_the_command(tmp_path, checkpoint, monkeypatch):
    """A true model ranks the answers of a true task; nothing of sampling is in the results."""
    rows = [{"question": f"{n}+1=", "choices": [str(n + 1), str(n + 2)], "gold": 0} for n in range(5)]
    (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "sums.yaml").write_text(
        f"""
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {tmp_path}/sums.jsonl}}, cache_dir: {tmp_path}/cache}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: gold
doc_to_choice: choices
target_delimiter: ""
"""
    )
    sample = harness.sample
    monkeypatch.setattr(harness, "sample", lambda *args: sample(*args, folder=tmp_path))
    find = lm_eval_tasks.find
    monkeypatch.setattr(lm_eval_tasks, "find", lambda name, own=tmp_path: find(name, own))
    out, samples = tmp_path / "after.json", tmp_path / "after.samples.jsonl"
    config = json.dumps({"tasks": {"tax": {"lm_eval": "sums", "metric": "acc", "items": 4}}, "seed": 0})
    name = "a/cpu/b/seed0/after"
    options = {"config": config, "model": checkpoint, "name": name, "out": out, "samples": samples}
    assert evaluate.main([f"--{option}={value}" for option, value in options.items()]) == 0
    result = json.loads(out.read_text())["tasks"]["tax"]
    assert set(result["metrics"]) == {"accuracy", "score"}
    assert (result["items"], result["samples"]) == (4, 1)
    assert len(samples.read_text().splitlines()) == 4


# -- chats ---------------------------------------------------------------------------------------------------
