"""Stage `distillation` with hindsight: a policy that sees a right response, or feedback, teaches itself."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs
from stage_runs import TASK, error_line
from test_distillation import DISTILLATION, POLICY, curve

from encore.data.forms import Prompter
from encore.errors import UserError
from encore.learning import hindsight

# the policy is its own teacher, which follows it; questions of two terms, of which the base solves some
HINDSIGHT: dict[str, Any] = {
    **{name: value for name, value in DISTILLATION.items() if name != "on_policy"},
    "task": {**TASK, "terms": [2, 2]},
    "hindsight": "{question}{response}",
    "args": {
        **DISTILLATION["args"],
        "num_generations": 8,
        "sync_ref_model": True,
        "ref_model_mixup_alpha": 0.5,
        "ref_model_sync_steps": 1,
    },
}


def alone(config: dict[str, Any], base: Path, folder: Path) -> tuple[str, list[str], Path]:
    """A stage whose only input is the policy, the base model of `base`."""
    shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.txt"))
    return "distillation", stage_runs.command("distillation", config, policy=POLICY), folder


def test_a_policy_that_sees_a_right_response_teaches_itself(base: Path, tmp_path: Path):
    """It learns of the completions that a right response helps, as many as the log says were helped."""
    run = alone(HINDSIGHT, base, tmp_path / "run")
    assert stage_runs.run(*run) == 0, (run[2] / "err.txt").read_text()
    lines = (run[2] / "results/distillation/completions.jsonl").read_text().splitlines()
    right = [row["rewards"]["accuracy"] for row in map(json.loads, lines)]
    groups = [right[start : start + 8] for start in range(0, len(right), 8)]
    helped = sum(sum(group) - score > 0 for group in groups for score in group)
    shares = curve(run[2], "hindsight")
    assert 0 < helped < len(right)
    assert sum(shares) / len(shares) == pytest.approx(helped / len(right), abs=0.1)
    assert min(curve(run[2], "divergence")) >= 0


def test_no_response_is_right(base: Path, tmp_path: Path):
    """Then no completion is in the loss, and the policy stays as it is."""
    keys = {"task": {**TASK, "terms": [8, 8]}, "args": {**HINDSIGHT["args"], "max_steps": 2, "save_steps": 2}}
    run = alone({**HINDSIGHT, **keys}, base, tmp_path / "run")
    assert stage_runs.run(*run) == 0, (run[2] / "err.txt").read_text()
    assert set(curve(run[2], "hindsight")) == set(curve(run[2], "divergence")) == {0.0}
    weights = [
        run[2] / f"checkpoints/{kind}/final/model.safetensors" for kind in ("pretrain", "distillation")
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


TOLD = """
from dataclasses import dataclass
from encore.worlds.chain import Chain
@dataclass(frozen=True)
class Told(Chain):
    name = "chain"
    def feedback(self, problem, completion):
        return problem.answer
@dataclass(frozen=True)
class Lenient(Told):
    def verify(self, problem, completion):  # a tenth of all texts, so that some groups have a right response
        return sum(map(ord, completion)) % 10 == 1 or super().verify(problem, completion)
"""
FEEDBACK: dict[str, Any] = {
    **HINDSIGHT,
    "feedback": "{question}{feedback}",
    "task": {**HINDSIGHT["task"], "world": "told:Lenient"},
}


def told(keys: dict[str, Any], base: Path, folder: Path) -> Path:
    """The folder of a stage whose teacher reads feedback, from a world of a user, after it has run."""
    run = alone({**FEEDBACK, **keys}, base, folder)
    (run[2] / "told.py").write_text(TOLD)
    assert stage_runs.run(*run) == 0, (run[2] / "err.txt").read_text()
    return run[2]


def test_a_wrong_completion_without_a_right_one_beside_it_is_told_what_is_wrong(base: Path, tmp_path: Path):
    """As many completions of the log as the curve says: a right completion needs no feedback."""
    folder = told({}, base, tmp_path / "run")
    lines = (folder / "results/distillation/completions.jsonl").read_text().splitlines()
    right = [row["rewards"]["accuracy"] for row in map(json.loads, lines)]
    groups = [right[start : start + 8] for start in range(0, len(right), 8)]
    hopeless = sum(8 for group in groups if not sum(group)) / len(right)
    shares = curve(folder, "feedback")
    assert 0 < hopeless < 1
    assert sum(shares) / len(shares) == pytest.approx(hopeless, abs=0.1)


def test_feedback_teaches_where_no_response_is_right(base: Path, tmp_path: Path):
    args = {**HINDSIGHT["args"], "max_steps": 2, "save_steps": 2}
    folder = told(
        {"task": {**TASK, "world": "told:Told", "terms": [8, 8]}, "args": args}, base, tmp_path / "run"
    )
    assert set(curve(folder, "hindsight")) == {0.0}
    assert set(curve(folder, "feedback")) == {1.0}
    assert min(curve(folder, "divergence")) > 0


def test_a_context_too_short_for_hindsight(base: Path, tmp_path: Path):
    """The prompt of the teacher has a response more than the prompt of the policy."""
    args = {**HINDSIGHT["args"], "max_completion_length": 30}
    run = alone({**HINDSIGHT, "args": args}, base, tmp_path / "run")
    assert stage_runs.run(*run) == 2
    assert "positions, the model has" in error_line(run[2])


@pytest.mark.parametrize("group", [1, 2, 4])
def test_the_first_right_response_of_the_group_is_shown(group: int):
    for right in itertools.product([False, True], repeat=8):
        for number, shown in enumerate(hindsight.shown_responses(right, group)):
            mates = [other for other in range(8) if other // group == number // group and other != number]
            assert shown == min((other for other in mates if right[other]), default=None)


def test_feedback_is_text_and_stands_in_its_own_prompt():
    form = Prompter("<user>{}<assistant><think>".format, "<think>")
    words = hindsight.Told("{feedback}|{question}", lambda problems, completions: [])
    shown = hindsight.Hindsight("{question}{response}", form, words)
    row = {"question": "{feedback}?", "prefill": "<think>"}
    told = "<user>{question}{response}|{feedback}?<assistant><think>"
    assert shown.prompt_with_feedback(row, "{question}{response}") == told


def test_a_prompt_shows_question_and_response_as_they_are():
    """A completion is untrusted: places that it names itself are text."""
    form = Prompter("<user>{}<assistant><think>".format, "<think>")
    row = {"question": "{response}?", "prefill": "<think>"}
    shown = hindsight.Hindsight("{question}|{response}", form).prompt(row, "{question}</think>")
    assert shown == "<user>{response}?|<think>{question}</think><assistant><think>"


ITSELF, WORDS = {"policy": "a"}, "{question}{feedback}"


@pytest.mark.parametrize(
    ("keys", "needs", "says"),
    [
        ({}, {**ITSELF, "teacher": "b"}, "hindsight: needs.teacher names a teacher; remove one of the two"),
        ({"hindsight": None}, ITSELF, "needs.teacher: missing; or write hindsight"),
        ({"hindsight": "{question}"}, ITSELF, "hindsight: expected {response} exactly once"),
        ({"args": {"num_generations": 1}}, ITSELF, "args.num_generations: hindsight takes a response of the"),
        ({"on_policy": 0.5}, ITSELF, "on_policy: hindsight is on what the policy itself has sampled"),
        ({"hindsight": None}, {**ITSELF, "teacher": "b"}, "args.sync_ref_model: a teacher of another stage"),
        ({"lora": {"rank": 8, "alpha": 16.0}}, ITSELF, "args.sync_ref_model: a reference without adapters"),
        ({"feedback": "{question}"}, ITSELF, "feedback: expected {feedback} exactly once"),
        (
            {"feedback": WORDS},
            ITSELF,
            "feedback: nothing says in words why a completion is wrong; world functions",
        ),
        (
            {"feedback": WORDS, "hindsight": None},
            {**ITSELF, "teacher": "b"},
            "feedback: stands beside hindsight",
        ),
    ],
)
def test_keys_that_make_no_sense_in_hindsight(keys: dict[str, Any], needs: dict[str, str], says: str):
    config = {**HINDSIGHT, **keys, "args": {**HINDSIGHT["args"], **keys.get("args", {})}}
    config = {name: value for name, value in config.items() if value is not None}
    with pytest.raises(UserError) as error:
        jobs.stage("distillation", {**config, "needs": needs}).check_rules()
    assert says in str(error.value)


@pytest.mark.slow
def test_killed_while_the_teacher_follows(base: Path, tmp_path: Path):
    """The teacher's weights are part of a checkpoint."""
    stage_runs.require_resumed(lambda name: alone(HINDSIGHT, base, tmp_path / name), [8, 15, 22])
