"""What the stage `distillation` optimises is the divergence of the equation; small mistakes would be seen."""

from pathlib import Path
from typing import Any

import distillation_cases
import pytest
from compare import TOLERANCE, worst
from observe import LAYOUTS
from test_mutations import mutate

from encore.learning import distillation
from encore.learning.distillation import Distillation
from encore.learning.hindsight import OfHindsight, shown_responses

APART, SUMMED, LOSS = Distillation.apart, Distillation.summed, Distillation.loss
IN_LINE, HINDSIGHT = distillation._in_line, distillation_cases.HINDSIGHT
HEAD, PROMPTS = "of_teacher = _head(self.reference.model)", "torch.zeros_like(prompt_mask)"

FAST = {("reverse_kl", "windows"), ("forward_kl", "minibatches"), ("jsd", "epochs"), (HINDSIGHT, "windows")}
GRID = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case in distillation_cases.CASES
    for layout in LAYOUTS
]
# what is wrong, a case that shows it, the function, a piece of it, in its place
MUTATIONS: list[tuple[str, str, Any, str, str]] = [
    ("the other direction", "reverse_kl", APART, "self.interpolation", "1 - self.interpolation"),
    ("no temperature", "jsd", APART, "self.trainer.temperature", "1.0"),
    ("its own teacher", "reverse_kl", APART, HEAD, "of_teacher = _head(policy)"),
    ("the token itself", "reverse_kl", Distillation.states, "[:, :-1]", "[:, 1:]"),
    ("prompts learned", "reverse_kl", IN_LINE, PROMPTS, "prompt_mask"),
    ("truncated learned", "forward_kl", IN_LINE, "minibatch.loss_mask]", "minibatch.completion_ids != 0]"),
    ("micro-batch's mean", "reverse_kl", LOSS, "step_tokens.clamp(min=1)", "minibatch.loss_mask.sum()"),
    ("no hindsight", HINDSIGHT, SUMMED, "if prompts is not None", "if prompts is None"),
    ("its own response", HINDSIGHT, shown_responses, "and other != number", ""),
    ("the helpless learned", HINDSIGHT, OfHindsight.estimate, "* helped[:, None]", ""),
    ("a wrong response", HINDSIGHT, OfHindsight.estimate, "scores.accuracy >= 1", "scores.accuracy >= 0"),
]


@pytest.mark.parametrize(("case", "layout"), GRID)
def test_value_and_gradient(case: str, layout: str, folder: Path):
    seen = distillation_cases.run(folder, case, layout)
    results = distillation_cases.outcomes(seen, case, folder)
    shape = LAYOUTS[layout]
    assert len(results) == 2 * shape["slices"] * shape["epochs"] // shape["accumulate"]
    assert worst(results) < TOLERANCE
    assert min(result.expected.norm() for result in results) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "function", "piece", "other"),
    [mutation[1:] for mutation in MUTATIONS],
    ids=[f"{case}: {what}" for what, case, *_ in MUTATIONS],
)
def test_a_mistake_is_seen(
    case: str, function: Any, piece: str, other: str, monkeypatch: pytest.MonkeyPatch, folder: Path
):
    mutate(monkeypatch, function, piece, other)
    results = distillation_cases.outcomes(distillation_cases.run(folder, case, "windows"), case, folder)
    assert worst(results) > 100 * TOLERANCE
