"""The loss of completions that a tool has answered is that of the policy's own tokens: value and gradient.

What is the policy's and what the tool's is known here from the script, not from the stage: each completion
is written down in pieces, and the stage is given the policy's.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import observe
import pytest
import references as paper
import torch
from cases import DR, SEQUENCE, SUM, TOKENS, centered, normalized
from compare import TOLERANCE, Case, compare, worst
from observe import CAP, GROUP, Rollout, Watch

CALLS, LONGEST = 2, 1  # results are cut
TASK = {"world": "products", "products": [2, 2], "digits": [1, 1]}
KEYS = {"task": TASK, "tool": {"name": "calculator", "calls": CALLS, "longest": LONGEST}}
CASES = {
    "grpo-kl": Case(partial(paper.grpo, **TOKENS, beta=0.3), normalized, {"beta": 0.3}, KEYS),
    "dapo": Case(
        partial(paper.dapo, low=0.2, high=0.28),
        normalized,
        {"loss_type": "dapo", "epsilon_high": 0.28, "mask_truncated_completions": True},
        KEYS,
    ),
    "dr_grpo": Case(partial(paper.dr_grpo, **TOKENS), centered, DR, KEYS, scale=SUM),
    "gspo": Case(partial(paper.gspo, low=3e-3, high=4e-3), normalized, SEQUENCE, KEYS),
}
FAST = {("grpo-kl", "epochs"), ("dapo", "windows"), ("gspo", "minibatches")}
GRID = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case in CASES
    for layout in ("minibatches", "windows", "epochs")
]


def pieces(question: str, place: int) -> list[tuple[str, bool]]:
    """A completion and whether each part of it is the policy's: by its place in the group."""
    a, b, c, d = map(int, re.findall(r"\d+", question))
    answer = f"<answer>{a * b + c * d}</answer><eos>"
    called = [(f"<tool>{a}*{b}</tool>", True), (f"<result>{str(a * b)[:LONGEST]}</result>", False)]
    if place == 0:
        return [(answer, True)]
    if place == 1:
        more = [(f"<tool>{c}*{d}</tool>", True), (f"<result>{str(c * d)[:LONGEST]}</result>", False)]
        # one call more than are answered, which is then a text like any other
        return [*called, *more, (f"<tool>{a}</tool>{answer}", True)]
    if place == 2:
        return [(f"{a}*</tool>", True), ("<result>error</result>", False), ("<answer>0</answer><eos>", True)]
    return [*called, ("*" * (CAP - len(re.findall("<[^>]*>|.", called[0][0]))), True)]  # cut off


def script(seen: Watch) -> None:
    """Have the trainer sample `pieces`, turn by turn."""
    trainer = seen.trainer
    tokenizer = trainer.processing_class
    told: list[list[tuple[list[int], bool]]] = []
    turn = 0

    def sample(contexts: list[list[int]], *args: Any) -> tuple[list[list[int]], None]:
        nonlocal told, turn
        if not seen.rollouts or seen.rollouts[-1].step != trainer.state.global_step:
            seen.rollouts.append(Rollout(trainer.state.global_step, observed(trainer)))
            told, turn = [written(tokenizer, context, row) for row, context in enumerate(contexts)], 0
            now = seen.rollouts[-1]
            now.prompts += [[*context] for context in contexts]
            now.completions += [[token for ids, _ in row for token in ids] for row in told]
            now.own += [[own for ids, own in row for _ in ids] for row in told]
        going = [row for row, parts in enumerate(told) if len(parts) > 2 * turn]
        for row, context in zip(going, contexts, strict=True):
            before = [token for ids, _ in told[row][: 2 * turn] for token in ids]
            assert context == [*seen.rollouts[-1].prompts[row], *before]
        turn += 1
        return [[*told[row][2 * turn - 2][0]] for row in going], None

    trainer._generate_single_turn = sample


def observed(trainer: Any) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}


def written(tokenizer: Any, prompt: list[int], row: int) -> list[tuple[list[int], bool]]:
    question = tokenizer.decode(prompt).removeprefix("<user>").removesuffix("<assistant>")
    return [(tokenizer(text)["input_ids"], own) for text, own in pieces(question, row % GROUP)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


def watched(case: Case, layout: str, folder: Path) -> Watch:
    return observe.watch(folder, {"args": observe.arguments(layout, **case.args), **case.keys}, script)


@pytest.mark.parametrize(("case", "layout"), GRID)
def test_value_and_gradient(case: str, layout: str, folder: Path):
    seen = watched(CASES[case], layout, folder)
    outcomes = compare(CASES[case], seen, folder)
    assert worst(outcomes) < TOLERANCE, [(one.value_error, one.gradient_error) for one in outcomes]
    assert any(one.expected.norm() > 0.1 for one in outcomes)
    for rollout in seen.rollouts:  # with the tool's tokens in the equation the comparison fails
        rollout.own.clear()
    assert worst(compare(CASES[case], seen, folder)) > 1000 * TOLERANCE


def test_results_that_are_learned_are_as_if_the_policy_had_written_them(folder: Path):
    case = replace(CASES["grpo-kl"], keys={**KEYS, "learn_results": True})
    seen = watched(case, "windows", folder)
    for rollout in seen.rollouts:
        rollout.own.clear()
    assert worst(compare(case, seen, folder)) < TOLERANCE


def test_what_is_counted_are_the_policys_tokens(folder: Path):
    """Lengths, the share cut off, calls and malformed ones."""
    seen = watched(CASES["grpo-kl"], "one-update", folder)
    first = seen.trainer.state.log_history[0]
    now = seen.rollouts[0]
    lengths = [sum(own) for own in now.own]
    assert first["completions/mean_length"] == sum(lengths) / len(lengths)
    assert first["completions/max_length"] == max(lengths) == CAP
    assert first["completions/clipped_ratio"] == 0.25
    assert (first["tool/calls"], first["tool/used"]) == (1.0, 0.75)
    assert first["tool/malformed"] == 0.25
    assert [row["tokens"] for row in seen.records[-1]] == [sum(own) for own in seen.rollouts[-1].own]
