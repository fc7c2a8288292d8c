"""Watches the stage `distillation` at work, and puts what it did beside the equation.

As `observe` does for grpo: the real stage on a float64 model, with scripted completions.
"""

import math
from pathlib import Path
from typing import Any

import observe
import torch
from compare import Outcome, Reader
from observe import Update, Watch
from ppo_cases import rows_of
from stage_runs import finished

from encore.learning.minibatch import Minibatch

HINDSIGHT, SHOWN, MIXED = "hindsight", "{question}{response}", 0.3
# divergence -> arguments; a temperature is of both distributions. HINDSIGHT is by reverse KL from the policy
# itself, whose weights are mixed into the teacher's at each step
CASES: dict[str, dict[str, Any]] = {
    "reverse_kl": {},
    "forward_kl": {"mask_truncated_completions": True},
    "jsd": {"temperature": 0.7},
    HINDSIGHT: {
        "num_generations": observe.GROUP,
        "sync_ref_model": True,
        "ref_model_mixup_alpha": MIXED,
        "ref_model_sync_steps": 1,
    },
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
        "divergence": "reverse_kl" if case == HINDSIGHT else case,
        **({"hindsight": SHOWN} if case == HINDSIGHT else {}),
        "args": {**plain, **CASES[case], "model_init_kwargs": {"dtype": "float64"}},
    }
    inputs = {} if case == HINDSIGHT else {"teacher": teacher(folder)}
    return observe.trained(
        distillation, config, inputs, folder, lambda trainer: observe.recorder(trainer, {"accuracy": 0.0})
    )


def divergence(case: str, policy: torch.Tensor, of_teacher: torch.Tensor) -> torch.Tensor:
    """The divergence at each token, (T,), of log-probabilities (T, vocabulary)."""

    def kl(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return (first.exp() * (first - second)).sum(dim=1)

    if case in ("reverse_kl", HINDSIGHT):
        return kl(policy, of_teacher)
    if case == "forward_kl":
        return kl(of_teacher, policy)
    mean = torch.logaddexp(policy, of_teacher) - math.log(2)
    return kl(policy, mean) / 2 + kl(of_teacher, mean) / 2


class Taught:
    """What a teacher reads and says: another model at the policy's prompts, or the policy in hindsight."""

    def __init__(self, seen: Watch, case: str, folder: Path):
        self.seen, self.follows = seen, case == HINDSIGHT
        place = folder / ("model" if self.follows else "teacher/final")
        self.reader = Reader(place, seen.trainer.args.temperature)
        self.words = seen.trainer.processing_class

    def follow(self, update: Update) -> None:
        """Mix the weights of the policy into the teacher's, as after each step but the first."""
        if not self.follows or update is self.seen.updates[0]:
            return
        with torch.no_grad():
            for name, weight in self.reader.model.state_dict().items():
                weight.mul_(1 - MIXED).add_(MIXED * update.parameters[name])

    def every(self, update: Update, prompt: list[int], completion: list[int]) -> torch.Tensor | None:
        """Its log-probabilities at a completion, (T, vocabulary); None if no response of the group is right.

        Completions that are alike may be shown different responses: of these, the one that the stage shows.
        """
        if not self.follows:
            return self.reader.every(prompt, completion).detach()
        rollout, prompts = self.seen.rollouts[update.rollout], []
        for row, ids in enumerate(rollout.completions):
            if ids == completion and rollout.prompts[row] == prompt:
                start = row // observe.GROUP * observe.GROUP
                others = [other for other in range(start, start + observe.GROUP) if other != row]
                right = [rollout.texts[other] for other in others if rollout.rewards[other][0] == 1]
                question = rollout.problems[row].question
                prompts += [f"<user>{question}{text}<assistant>" for text in right[:1]]
        if not prompts:
            return None
        ids = [self.words(text)["input_ids"] for text in prompts]
        shown = [self.shown(part) for part in update.slices]
        chosen = next((row for row in ids if any(tuple(row) in part for part in shown)), ids[0])
        return self.reader.every(chosen, completion).detach()

    def shown(self, part: Minibatch) -> set[tuple[int, ...]]:
        """The prompts that the stage gives the teacher."""
        assert part.taught_prompt_ids is not None
        return {
            tuple(t for t in row if t != self.words.pad_token_id) for row in part.taught_prompt_ids.tolist()
        }


def outcomes(seen: Watch, case: str, folder: Path) -> list[Outcome]:
    """Of each step: loss and gradient, and what the mean over the step's tokens says they are."""
    args = seen.trainer.args
    policy, taught = Reader(folder / "model", args.temperature), Taught(seen, case, folder)
    end, results = seen.trainer.processing_class.eos_token_id, []
    with observe.quick():
        for update in seen.updates:
            policy.load(update.parameters)
            taught.follow(update)
            rows = [row for part in update.slices for row in rows_of(part, policy.pad)]
            if args.mask_truncated_completions:
                rows = [row for row in rows if row[1][-1] == end]
            terms = []
            for prompt, completion in rows:
                pair = [*prompt], [*completion]
                if (of_teacher := taught.every(update, *pair)) is not None:
                    terms.append(divergence(case, policy.every(*pair), of_teacher))
            loss = torch.cat(terms).mean()
            loss.backward()
            assert update.gradient is not None
            results.append(Outcome(update.loss, loss.item(), update.gradient, policy.gradient()))
    return results
