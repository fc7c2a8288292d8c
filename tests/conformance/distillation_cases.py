"""Watches the stage `distillation` at work, and puts what it did beside the equation.

As `observe` does for grpo: the real stage on a float64 model, with scripted completions.
"""

import math
from pathlib import Path
from typing import Any

import observe
import torch
from compare import Outcome, Reader
from observe import Watch
from ppo_cases import rows_of
from stage_runs import finished

# divergence -> arguments; a temperature is of both distributions
CASES: dict[str, dict[str, Any]] = {
    "reverse_kl": {},
    "forward_kl": {"mask_truncated_completions": True},
    "jsd": {"temperature": 0.7},
}
ARGUMENTS = (
    *("num_iterations", "per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation"),
    *("temperature", "top_p", "mask_truncated_completions", "lr_scheduler_type", "learning_rate"),
    *("max_grad_norm", "max_completion_length", "pad_to_multiple_of", "max_steps", "save_strategy"),
)


def teacher(folder: Path) -> Path:
    """Return the metrics.json of a teacher, which has other weights than the policy."""
    place = folder / "teacher"
    if not place.exists():
        reader = Reader(observe.model(folder))
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in reader.model.parameters():
                weight += 0.1 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
        reader.model.save_pretrained(place / "final")
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (place / "final" / name).write_bytes((folder / "model" / name).read_bytes())
    return finished(place)


def run(folder: Path, case: str, layout: str) -> Watch:
    """Run the stage on a case in a layout of `observe.LAYOUTS`."""
    from encore.stages import distillation

    plain = {name: value for name, value in observe.arguments(layout).items() if name in ARGUMENTS}
    config = {
        "task": observe.TASK,
        "template": observe.TEMPLATE,
        "problems": 16,
        "model": {"path": str(observe.model(folder))},
        "divergence": case,
        "args": {**plain, **CASES[case], "model_init_kwargs": {"dtype": "float64"}},
    }
    inputs = {"teacher": teacher(folder)}
    return observe.trained(
        distillation, config, inputs, folder, lambda trainer: observe.recorder(trainer, {"accuracy": 0.0})
    )


def divergence(case: str, policy: torch.Tensor, of_teacher: torch.Tensor) -> torch.Tensor:
    """The divergence at each token, (T,), of log-probabilities (T, vocabulary)."""

    def kl(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return (first.exp() * (first - second)).sum(dim=1)

    if case == "reverse_kl":
        return kl(policy, of_teacher)
    if case == "forward_kl":
        return kl(of_teacher, policy)
    mean = torch.logaddexp(policy, of_teacher) - math.log(2)
    return kl(policy, mean) / 2 + kl(of_teacher, mean) / 2


def outcomes(seen: Watch, case: str, folder: Path) -> list[Outcome]:
    """Of each step: loss and gradient, and what the mean over the step's tokens says they are."""
    args = seen.trainer.args
    policy = Reader(folder / "model", args.temperature)
    fixed = Reader(folder / "teacher/final", args.temperature)
    end, results = seen.trainer.processing_class.eos_token_id, []
    with observe.quick():
        for update in seen.updates:
            policy.load(update.parameters)
            rows = [row for part in update.slices for row in rows_of(part, policy.pad)]
            if args.mask_truncated_completions:
                rows = [row for row in rows if row[1][-1] == end]
            pairs = [([*prompt], [*completion]) for prompt, completion in rows]
            terms = [divergence(case, policy.every(*pair), fixed.every(*pair).detach()) for pair in pairs]
            loss = torch.cat(terms).mean()
            loss.backward()
            assert update.gradient is not None
            results.append(Outcome(update.loss, loss.item(), update.gradient, policy.gradient()))
    return results
