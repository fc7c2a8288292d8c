"""A verifier of one's own that fails over some completions, or over all of them."""

import json
from pathlib import Path

import pytest

from evals import evaluate

OWN = """
def picky(question, answer, completion):
    if len(completion) % 2:
        raise KeyError(completion)
    return True

def broken(question, answer, completion):
    return completion[10**6] == answer
"""
MIXED = 8  # samples an item: enough for both kinds of completions


@pytest.fixture
def measured(tmp_path, monkeypatch, checkpoint):
    """Runs the command with such a verifier; returns its status, its result and the samples of its items."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)
    Path("fails.py").write_text("1 / 0\ndef f(*_): return True\n")
    Path("asked.jsonl").write_text("".join(f'{{"q": "{n}+1=", "a": "{n + 1}"}}\n' for n in range(3)))

    def run(verifier):
        task = {
            "task": {"file": "asked.jsonl", "question": "q", "answer": "a", "verifier": verifier},
            "template": "<user>{question}<assistant>",
            **{"items": 3, "samples": MIXED, "temperature": 1.0, "top_p": 1.0, "max_gen_toks": 9, "k": [1]},
        }
        config = json.dumps({"tasks": {"asked": task}, "seed": 0})
        options = {"config": config, "model": checkpoint, "name": "r/cpu/a/seed0/after", "gpus": 0}
        files = {"out": "after.json", "samples": "after.samples.jsonl"}
        status = evaluate.main([f"--{key}={value}" for key, value in (options | files).items()])
        if not Path("after.json").exists():
            return status, None, []
        rows = [json.loads(line) for line in Path("after.samples.jsonl").read_text().splitlines()]
        return status, json.loads(Path("after.json").read_text()), rows

    return run


@pytest.mark.fault(
    "a verifier of one's own fails over an answer",
    "an evaluation",
    "counted as wrong; a warning on the console and the page says how many and names the first",
)
def test_what_it_fails_over_is_counted_and_told(measured, capsys):
    status, result, rows = measured("mine:picky")
    assert status == 0
    failed = [len(text) % 2 == 1 for row in rows for text in row["completions"]]
    assert 0 < sum(failed) < len(failed) == 3 * MIXED
    assert [right for row in rows for right in row["correct"]] == [not one for one in failed]
    told = [(row["item"], int(n)) for row in rows for n in row.get("unjudged", {})]
    assert told == [divmod(i, MIXED) for i, one in enumerate(failed) if one]
    [check] = result["health"]
    first = next(text for row in rows for text in row["completions"] if len(text) % 2)
    says = f"asked: {sum(failed)} of {3 * MIXED} completions count as wrong: mine:picky: KeyError: {first!r} "
    assert check["message"] == says + "(mine.py, line 4)"
    assert (check["ok"], check["value"]) == (False, sum(failed) / len(failed))
    assert f"warning: {check['message']}" in capsys.readouterr().out


def test_one_that_fails_over_all_ends_it(measured, capsys):
    status, result, _ = measured("mine:broken")
    assert (status, result) == (2, None)
    last = capsys.readouterr().out.splitlines()[-1]
    assert f"error: health check verifier_fails: asked: {3 * MIXED} of {3 * MIXED} completions" in last
    assert last.endswith("mine:broken: IndexError: string index out of range (mine.py, line 8)")


def test_one_that_cannot_be_loaded_is_told_before_anything_is_sampled(measured, capsys):
    status, result, _ = measured("fails:f")
    assert (status, result) == (2, None)
    [line] = capsys.readouterr().out.splitlines()
    says = "fails.py: ZeroDivisionError: division by zero (fails.py, line 1)"
    assert line.endswith(f"error: evals.tasks.asked: {says}")
