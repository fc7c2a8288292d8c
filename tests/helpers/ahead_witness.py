"""Watches a `grpo` stage whose server samples ahead: which weights sample, and do updates go on meanwhile?

Each rollout that is learned from becomes a line of WITNESS in the working folder. `gaps` says how far the
sampler's log-probabilities are from those of each version of the policy whose weights the server has got, in
nats at most. A request after the first waits until an update with its weights has ended, so a stage that does
not go on with its updates meanwhile ends with an error.
"""

import json
import threading
from pathlib import Path
from typing import Any

import torch

WITNESS = Path("witness.jsonl")
LONGEST = 120  # seconds that a request waits for an update


def watch() -> None:
    """Watch the stage that this process is about to run."""
    from trl.generation.vllm_client import VLLMClient

    from encore.learning.ahead import AheadSampler
    from encore.learning.resumable import Resumable

    weights: dict[int, dict[str, torch.Tensor]] = {}
    update, requests = threading.Condition(), [0]
    updates, loaded = [0], [0]  # number of updates that have ended, now and when the server got its weights
    load, sample = AheadSampler._load, AheadSampler.sample
    generate, step = VLLMClient.generate, Resumable.training_step

    def noted(self: Any) -> None:
        load(self)
        loaded[0] = updates[0]
        model = self.trainer.model.state_dict()
        weights[self.version] = {name: weight.clone() for name, weight in model.items()}

    def compared(self: Any, prompts: list[str], cap: int) -> Any:
        sampled = sample(self, prompts, cap)
        row = {
            "rollout": self.version,
            "staleness": self.staleness,
            "gaps": {version: gap(self.trainer, of, sampled) for version, of in weights.items()},
        }
        with WITNESS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return sampled

    def waiting(self: Any, *args: Any, **options: Any) -> Any:
        requests[0] += 1
        with update:
            if requests[0] > 1 and not update.wait_for(lambda: updates[0] > loaded[0], LONGEST):
                raise AssertionError("no update has ended while the server was to sample")
        return generate(self, *args, **options)

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        result = step(self, *args, **options)
        with update:
            updates[0] += 1
            update.notify_all()
        return result

    AheadSampler._load, AheadSampler.sample = noted, compared  # type: ignore[method-assign]
    VLLMClient.generate, Resumable.training_step = waiting, counted


def gap(trainer: Any, weights: dict[str, torch.Tensor], sampled: Any) -> float:
    """The largest difference between the sampler's log-probabilities and those by `weights`."""
    rollouts, policy, model = trainer.parts.rollouts, trainer.parts.policy, trainer.model
    tokens = rollouts.tokens(sampled, torch.ones(len(sampled.completions), dtype=torch.bool))
    now = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(weights)
    with torch.no_grad():
        logps = policy.logps(model, tokens, len(tokens)).logp
    model.load_state_dict(now)
    difference = (logps - policy.as_rectangle(sampled.logps, tokens.time)).abs()
    return float(difference[tokens.loss_mask.bool()].max())


def rows(folder: Path) -> list[dict[str, Any]]:
    """What was noted in `folder`, one row for each rollout."""
    return [json.loads(line) for line in (folder / WITNESS).read_text().splitlines()]


def check(found: list[dict[str, Any]], ahead: int) -> None:
    """Each rollout was sampled by the version that the staleness says, and by no other."""
    for row in found:
        assert row["staleness"] == min(row["rollout"], ahead)
        by = str(row["rollout"] - row["staleness"])
        if by in row["gaps"]:  # not of a version before the stage was killed
            gaps = dict(row["gaps"])
            assert gaps.pop(by) < 1e-4
            assert all(other > 1e-3 for other in gaps.values()), row
