"""Watches the stage `dpo` at work, and puts what it did beside what its papers say, in float64.

The references know nothing of TRL: log-probabilities come from a plain forward pass of one unpadded row.

    sigmoid   DPO, Rafailov et al. 2023, arXiv 2305.18290, Eq. 7
    robust    rDPO, Chowdhury et al. 2024, arXiv 2403.00409, Eq. 12: labels flipped with probability e
    ipo       Azar et al. 2023, arXiv 2310.12036, Eq. 17, with log-ratios per token as TRL has them
    hinge     SLiC, Zhao et al. 2023, arXiv 2305.10425, Eq. 2, of the implicit rewards
    cpo       Xu et al. 2024, arXiv 2401.08417, Eq. 7: no reference, and the likelihood of the chosen
    orpo      Hong et al. 2024, arXiv 2403.07691, Eq. 6 and 7: no reference, odds, likelihood of the chosen
    simpo     Meng et al. 2024, arXiv 2405.14734, Eq. 6
"""

import functools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import observe
import torch
from compare import Outcome, Reader
from torch import Tensor
from transformers import TrainerCallback

from encore.data import preferences
from encore.runtime import files, sentinel

BETA = 0.3
FLIPPED, GAMMA = 0.2, 0.4
# micro-batch size, gradient accumulation, steps
LAYOUTS = {"one-batch": (8, 1, 2), "accumulated": (2, 4, 3), "single-pairs": (1, 3, 4)}

# of the log-ratios of the chosen and of the rejected, (), and of their lengths
Loss = Callable[[Tensor, Tensor, int, int], Tensor]


def log_sigmoid(x: Tensor) -> Tensor:
    return -torch.log1p(torch.exp(-x))


def sigmoid(chosen: Tensor, rejected: Tensor, *lengths: int) -> Tensor:
    return -log_sigmoid(BETA * chosen - BETA * rejected)


def robust(chosen: Tensor, rejected: Tensor, *lengths: int) -> Tensor:
    right, wrong = sigmoid(chosen, rejected), sigmoid(rejected, chosen)
    return ((1 - FLIPPED) * right - FLIPPED * wrong) / (1 - 2 * FLIPPED)


def ipo(chosen: Tensor, rejected: Tensor, long: int, short: int) -> Tensor:
    return (chosen / long - rejected / short - 1 / (2 * BETA)) ** 2


def hinge(chosen: Tensor, rejected: Tensor, *lengths: int) -> Tensor:
    return (1 - BETA * (chosen - rejected)).clamp(min=0)


def simpo(chosen: Tensor, rejected: Tensor, long: int, short: int) -> Tensor:
    return -log_sigmoid(BETA * chosen / long - BETA * rejected / short - GAMMA)


def orpo(chosen: Tensor, rejected: Tensor, long: int, short: int) -> Tensor:
    odds = [torch.exp(logp / count) for logp, count in ((chosen, long), (rejected, short))]
    better, worse = (p / (1 - p) for p in odds)
    return -BETA * log_sigmoid(torch.log(better / worse))


CASES: dict[str, tuple[Loss, dict[str, Any]]] = {
    "sigmoid": (sigmoid, {}),
    "robust": (robust, {"label_smoothing": FLIPPED}),
    "ipo": (ipo, {}),
    "hinge": (hinge, {}),
    "cpo": (sigmoid, {"loss_type": ["sigmoid", "sft"]}),
    "simpo": (simpo, {"loss_type": ["sigmoid_norm"]}),
    "orpo": (orpo, {}),
}
# case without a reference -> further keys of its stage
REFERENCE_FREE = {name: {"reference_free": True} for name in ("cpo", "orpo")}
REFERENCE_FREE["simpo"] = {"reference_free": True, "simpo_gamma": GAMMA}


class Seen:
    """What the stage did: weights before, examples, loss and gradient of each optimizer step.

    `read` yields the examples of a micro-batch, from the tensors that the loss is computed from.
    """

    def __init__(self, trainer: Any, read: Callable[[dict[str, Tensor]], Iterator[Any]]):
        self.trainer = trainer
        reference = trainer.ref_model.named_parameters() if trainer.ref_model else ()
        self.reference = {name: w.clone() for name, w in reference}
        self.weights: list[observe.Parameters] = []
        self.examples: list[list[Any]] = []  # a list a step
        self.losses: list[float] = []
        self.gradients: list[Tensor] = []
        train, step = trainer.training_step, []

        def training_step(model: Any, inputs: dict[str, Tensor], *args: Any) -> Tensor:
            if not step:
                self.weights.append({name: w.detach().clone() for name, w in model.named_parameters()})
            step.append(([*read(inputs)], train(model, inputs, *args)))
            return step[-1][1]

        class Gradient(TrainerCallback):
            def on_pre_optimizer_step(_, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                self.examples.append([example for examples, _ in step for example in examples])
                self.losses.append(sum(loss.item() for _, loss in step))
                gradients = [weight.grad for weight in trainer.model.parameters()]
                self.gradients.append(observe.flat(gradients, trainer.model))
                step.clear()

        trainer.training_step = training_step
        trainer.add_callback(Gradient())


def rows_of(inputs: dict[str, Tensor]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Prompt and completion of each row of a micro-batch."""
    masks = (inputs["attention_mask"], inputs["completion_mask"])
    return [
        (tuple(ids[(real == 1) & (reply == 0)].tolist()), tuple(ids[reply == 1].tolist()))
        for ids, real, reply in zip(inputs["input_ids"], *masks, strict=True)
    ]


def read(inputs: dict[str, Tensor]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Prompt, chosen and rejected completion of each pair."""
    rows = rows_of(inputs)
    half = len(rows) // 2
    for (prompt, chosen), (same, rejected) in zip(rows[:half], rows[half:], strict=True):
        assert prompt == same
        yield prompt, chosen, rejected


def rankings(count: int = 12) -> list[dict[str, Any]]:
    """Prompts with three ranked replies of very different lengths, some of them cut."""
    rng, rows = random.Random(0), []
    for number in range(count):
        a, b = rng.randint(0, 9), rng.randint(0, 9)
        sums = [f"{a}+{b}={value}," * rng.randint(1, 5) for value in (a + b, a + b + 1, a)]
        rows.append(
            {
                "prompt": f"<user>{a}+{b}=<assistant>" if number % 2 else f"<user>{a}+{b}+0+0=<assistant>",
                "question": f"{a}+{b}=",
                "answer": str(a + b),
                "difficulty": 2,
                "responses": [str(a), *sums[:2]],
                "truncated": [False, number % 3 == 0, False],
                "scores": [0.5, 1.5, 1.0],
                "ranking": [1, 2, 0],
                "split": "train",
            }
        )
    return rows


def product(folder: Path, fill: Callable[[Path], Any]) -> Path:
    """metrics.json of a stage whose product `fill` writes."""
    fill(folder / "final")
    final = folder / "final"
    found = {"model": str(final), "digest": sentinel.digest(final), "files": sentinel.sizes(final)}
    files.write_json(folder / "metrics.json", found)
    return folder / "metrics.json"


@functools.cache
def inputs(folder: Path) -> dict[str, Path]:
    """A policy with dropout in its configuration, another reference model, and pairs."""
    from transformers import Qwen3ForCausalLM

    start = observe.model(folder)

    def policy(place: Path) -> None:
        shutil.copytree(start, place)
        config = json.loads((place / "config.json").read_text())
        (place / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.5}))

    def reference(place: Path) -> None:
        shutil.copytree(start, place)
        moved = Qwen3ForCausalLM.from_pretrained(start, dtype=torch.float64)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in moved.parameters():
                weight += 0.1 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
        moved.save_pretrained(place)

    return {
        "policy": product(folder / "dpo-policy", policy),
        "reference": product(folder / "dpo-reference", reference),
        "data": product(folder / "dpo-data", lambda place: preferences.save(rankings(), place)),
    }


@functools.cache
def watch(folder: Path, case: str, layout: str) -> Seen:
    """What the stage did on a case in a layout."""
    from encore.stages import dpo

    args = {**arguments(*LAYOUTS[layout]), "loss_type": [case], **CASES[case][1]}
    config = {"pairs": "all", "args": args, **REFERENCE_FREE.get(case, {})}
    return observe.trained(dpo, config, inputs(folder), folder, lambda trainer: Seen(trainer, read))


def arguments(size: int, accumulate: int, steps: int) -> dict[str, Any]:
    """The `args` of a stage in a layout."""
    return {
        "beta": BETA,
        "per_device_train_batch_size": size,
        "gradient_accumulation_steps": accumulate,
        "learning_rate": 0.01,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "max_steps": steps,
        "save_strategy": "no",
        "model_init_kwargs": {"dtype": "float64"},
    }


def by_tokens(completions: list[Tensor]) -> Tensor:
    return torch.cat(completions).mean()


def by_completions(completions: list[Tensor]) -> Tensor:
    return torch.stack([each.sum() for each in completions]).mean()


def judge(
    seen: Seen, loss: Loss, folder: Path, likelihood: Callable[[list[Tensor]], Tensor] = by_tokens
) -> list[Outcome]:
    """Value and gradient of each optimizer step beside those of a reference.

    TRL's loss `sft`, and ORPO, maximise the `likelihood` of the chosen completions of a micro-batch too.
    """
    reader, outcomes, args = Reader(observe.model(folder)), [], seen.trainer.args
    for weights, pairs, value, gradient in zip(
        seen.weights, seen.examples, seen.losses, seen.gradients, strict=True
    ):
        rows = [(x, y) for x, *both in pairs for y in both]
        fixed = reader.fixed(seen.reference, rows) if seen.reference else {}
        anchor = {row: fixed[row].sum() if fixed else 0.0 for row in rows}
        reader.load(weights)
        logps = {(x, y): reader.read([*x], [*y])[0] for x, y in rows}
        terms = [
            loss(*(logps[x, y].sum() - anchor[x, y] for y in (long, short)), len(long), len(short))
            for x, long, short in pairs
        ]
        expected = torch.stack(terms).mean()
        if {"sft", "orpo"} & set(args.loss_type):
            chosen = [logps[x, y] for x, y, _ in pairs]
            size = args.train_batch_size
            batches = [chosen[at : at + size] for at in range(0, len(chosen), size)]
            expected = expected - torch.stack([likelihood(batch) for batch in batches]).mean()
        expected.backward()
        outcomes.append(Outcome(value, expected.item(), gradient, reader.gradient()))
    return outcomes
