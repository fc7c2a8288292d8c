"""The child process of `encore reward stress`: `python -m encore.commands.stress_job OPTIONS FILE`.

It writes each result as a line of JSON when it has it: a key and its value.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from encore.errors import Mistakes, UserError
from encore.recipe.kinds.domains import DomainStage
from encore.recipe.kinds.rollout import LEARNED, RolloutStage
from encore.recipe.load import load_named
from encore.recipe.task import Rewarded
from encore.runtime.environment import quiet_environment


@dataclass(frozen=True)
class Asked:
    """The options of the command, as its help has them."""

    reward: str | None
    data: str | None
    question: str
    answer: str
    recipe: str | None
    scale: str
    samples: str | None


@dataclass(frozen=True)
class Part:
    """A part of a recipe that pays rewards, or a user's data with one reward."""

    name: str
    part: Rewarded
    weights: Mapping[str, float]
    stage: Rewarded
    seed: int = 0
    samples: Path | None = None


def main(words: Sequence[str]) -> None:
    """Measure what the options in JSON, the first word, ask for; write lines to the file, the second word."""
    asked, log = Asked(**json.loads(words[0])), Path(words[1])
    with log.open("w", encoding="utf-8") as file:

        def tell(key: str, value: Any) -> None:
            print(json.dumps([key, value]), file=file, flush=True)

        try:
            quiet_environment(names_hub=asked.recipe is not None)
            os.environ["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
            # imported now, because torch reads the environment when it is imported
            from encore.rewards.stress import Stress
            from encore.rewards.subjects import of_part, read_samples  # likewise

            for part in parts(asked):
                stage = part.stage
                caps = stage.caps_by_step if isinstance(stage, RolloutStage) else None
                cache = stage.soft_overlong_cache if isinstance(stage, RolloutStage) else None
                samples = read_samples(part.samples) if part.samples else []
                weights, seed = part.weights, part.seed
                subject = of_part(
                    part.part, part.name, weights, seed=seed, caps=caps, cache=cache, samples=samples
                )
                tell("subject", [subject.reward, subject.task])
                for scored in Stress(subject, lambda name: tell("begun", name)).run():
                    tell("scored", asdict(scored))
            tell("done", None)
        except UserError as error:
            tell("mistake", str(error))
    sys.stdout.flush()
    os._exit(0)  # a user's threads must not keep the process


def parts(asked: Asked) -> list[Part]:
    """Return what is tested. Raises UserError with all mistakes in data or rewards."""
    samples = Path(asked.samples) if asked.samples else None
    if asked.recipe is None:
        task = {"file": asked.data, "question": asked.question, "answer": asked.answer, "verifier": "math"}
        weights = {str(asked.reward): 1.0}
        part = Rewarded.model_validate({"task": task, "rewards": weights})
        mistakes = Mistakes()
        with mistakes.gather():
            for place, words in part.asked_mistakes(needs_answers=True):
                mistakes.note(f"{place}: {words}")
        mistakes.tell()
        return [Part(str(asked.data), part, weights, part, samples=samples)]
    every = [*_parts_of_recipe(asked)]
    if samples and len(every) > 1:
        raise UserError(f"--samples: of which task? {asked.recipe} has {len(every)}; use --data")
    if not every:
        raise UserError(
            f"{asked.recipe}: no stage of its first arm pays rewards by rules at scale {asked.scale}"
        )
    return every


def _parts_of_recipe(asked: Asked) -> Iterator[Part]:
    """Yield each stage, or each domain of a stage, of the recipe's first arm that pays rewards by rules."""
    _, recipe, _ = load_named(str(asked.recipe), asked.scale)
    arm = recipe.arms(asked.scale)[0]
    for name in recipe.stages(asked.scale, arm):
        stage = recipe.stage(asked.scale, arm, name)
        if not isinstance(stage, Rewarded):
            continue
        named = stage.parts if isinstance(stage, DomainStage) else {"": stage}
        run = Path("results", recipe.name, asked.scale, arm)
        drawn = sorted(run.glob("seed*/evals/*.samples.jsonl"), key=lambda path: path.stat().st_mtime)
        samples = Path(asked.samples) if asked.samples else drawn[-1] if drawn and len(named) == 1 else None
        for domain, part in named.items():
            place = ".".join(filter(None, (f"{recipe.name}/{name}", domain)))
            weights = {asked.reward: 1.0} if asked.reward else part.rewards or {}
            if any(weight and reward not in LEARNED for reward, weight in weights.items()):
                yield Part(place, part, weights, stage, recipe.first_seed, samples)


if __name__ == "__main__":
    main(sys.argv[1:])
