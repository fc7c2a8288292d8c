"""What each change of stage `grpo` brings against a plain TRL script, on lengths as a reasoning model has.

    python tests/benchmarks/grpo_ladder.py --out FILE.csv [--pairs 3]

A model of 34M parameters that knows nothing draws each token with nearly the same chance: the lengths of its
completions are exponential, with a mean of a fifth of the cap. All rungs train it on the same prompts with
the same arguments, on one thread: a rollout of 64 completions, and two updates of 8 micro-batches of 4. Each
rung has the changes of the rungs before it, and one more.

Columns: rung, pair, tokens (of prompts and completions), train_s, tokens_per_s, positions_learned (positions
of the passes with a gradient for each token), positions_scored (positions of the other passes), peak_rss_mb.
Of the medians over pairs `tokens_per_s` and `peak_rss_mb` are ratios to the first rung's in the same pair.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plain_trl
from grpo_speed import GRPO, SEED, TEMPLATE, stage
from plain_trl import timed, write

from encore.runtime import provenance

ROWS, MICRO_BATCH = 64, 4
MODEL = {
    "task": GRPO["task"],
    "template": TEMPLATE,
    "corpus": {
        "documents": 64,
        "mixture": {"direct": 1.0},
        "also": [
            {"task": {"world": world}, "template": TEMPLATE, "share": 0.25, "mixture": {"direct": 1.0}}
            for world in ("bilingual", "functions", "products")
        ],
    },
    "model": {"hidden_size": 512, "layers": 8, "head_dim": 64, "max_position_embeddings": 1024},
    "args": {"per_device_train_batch_size": 64, "learning_rate": 1e-12, "max_steps": 1},
}
WORK = {
    **GRPO,
    "args": {
        **GRPO["args"],
        "per_device_train_batch_size": MICRO_BATCH,
        "gradient_accumulation_steps": ROWS // MICRO_BATCH // 2,
        "steps_per_generation": ROWS // MICRO_BATCH,
        "max_completion_length": 256,
        "learning_rate": 1e-6,
        "max_steps": 2,
    },
}


# -- what a rung lacks ---------------------------------------------------------------------------------------


def keep_padding() -> None:
    """Run each micro-batch as TRL does, as wide as the rollout's longest prompt and completion."""
    from trl import GRPOTrainer

    from encore.learning import policy

    def rectangle(
        model: Any, tokens: Any, rows: int | None, with_entropy: bool, accelerator: Any
    ) -> policy.LogProbs:
        trainer = SimpleNamespace(accelerator=accelerator)
        size = (tokens.ids, tokens.mask, tokens.time, rows or len(tokens), with_entropy)
        return policy.LogProbs(
            *GRPOTrainer._get_per_token_logps_and_entropies.__wrapped__(trainer, model, *size)
        )

    policy.without_padding = rectangle


def keep_order() -> None:
    """Leave the completions of an update in random order."""
    from encore.recipe.kinds import GrpoStage

    GrpoStage.by_length = property(lambda stage: False)  # type: ignore[assignment]


def score_again() -> None:
    """Compute the log-probabilities of a rollout anew, although the sampler knows them."""
    from encore.learning.samplers import LeanSampler

    LeanSampler.exact = False


RUNGS: dict[str, tuple[Callable[[], None], ...]] = {
    "plain TRL": (),
    "our decoder samples": (keep_padding, keep_order, score_again),
    "a micro-batch is as wide as its longest": (keep_order, score_again),
    "an update's micro-batches by length": (score_again,),
    "known log-probabilities are not computed": (),
}


# -- one rung, in a process of its own -----------------------------------------------------------------------


def counted() -> dict[bool, int]:
    """Count the positions of forward passes without a cache, by whether they have a gradient."""
    import torch
    from transformers import Qwen3ForCausalLM

    positions = {True: 0, False: 0}
    plain = Qwen3ForCausalLM.__call__

    def call(model: Any, *args: Any, **inputs: Any) -> Any:
        if inputs.get("past_key_values") is None:
            positions[torch.is_grad_enabled()] += inputs["input_ids"].numel()
        return plain(model, *args, **inputs)

    Qwen3ForCausalLM.__call__ = call
    return positions


def run(rung: str, policy: Path, folder: Path) -> None:
    """Train as the rung does, and write what it took to `folder`/run.json."""
    import torch

    torch.set_num_threads(1)
    positions = counted()
    if rung == next(iter(RUNGS)):
        model = Path(json.loads(policy.read_text())["model"])
        trainer = plain_trl.trainer(WORK, model, SEED, folder)
        began = time.perf_counter()
        trainer.train()
        tokens, seconds = trainer.state.num_input_tokens_seen, time.perf_counter() - began
    else:
        from encore.stages.__main__ import main as train

        for undo in RUNGS[rung]:
            undo()
        train(stage("grpo", {**WORK, "sampler": "lean"}, folder, policy)[3:])
        result = json.loads((folder / "provenance.json").read_text())
        tokens, seconds = result["tokens"], result["wall_s"]
    row = {
        "tokens": tokens,
        "train_s": seconds,
        "tokens_per_s": tokens / seconds,
        "positions_learned": positions[True] / tokens,
        "positions_scored": positions[False] / tokens,
    }
    (folder / "run.json").write_text(json.dumps(row))


def measured(rung: str, policy: Path, folder: Path) -> dict[str, Any]:
    """Return the row of a rung, without its pair."""
    folder.mkdir()
    command = [sys.executable, __file__, "--rung", rung, "--policy", str(policy), "--out", str(folder)]
    _, memory = timed(command, folder / "log")
    return {**json.loads((folder / "run.json").read_text()), "peak_rss_mb": memory}


def medians(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the medians over pairs of each rung, two of them of ratios to the first rung."""
    first = {row["pair"]: row for row in rows if row["rung"] == next(iter(RUNGS))}
    summary = []
    for rung in RUNGS:
        pairs = [row for row in rows if row["rung"] == rung]
        row = {"rung": rung, "pair": "median"}
        for column in ("tokens", "train_s", "positions_learned", "positions_scored"):
            row[column] = statistics.median(pair[column] for pair in pairs)
        for column in ("tokens_per_s", "peak_rss_mb"):
            row[column] = statistics.median(pair[column] / first[pair["pair"]][column] for pair in pairs)
        summary.append(row)
    summary[0] |= {"commit": provenance.commit()[0], "machine": provenance.hardware()["cpu"]}
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--rung", choices=RUNGS, help=argparse.SUPPRESS)  # of the child process
    parser.add_argument("--policy", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rung:
        run(options.rung, options.policy, options.out)
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        policy = folder / "base" / "metrics.json"
        policy.parent.mkdir()
        timed(stage("pretrain", MODEL, policy.parent), policy.parent / "log")
        for pair in range(options.pairs):
            # alternate which goes first, so that a drift of the machine's speed hits all alike
            for rung in [*RUNGS] if pair % 2 == 0 else [*reversed(RUNGS)]:
                place = folder / f"{pair}-{[*RUNGS].index(rung)}"
                rows.append({"rung": rung, "pair": pair, **measured(rung, policy, place)})
                print(f"pair {pair} {rung}: {rows[-1]['tokens_per_s']:.0f} tok/s", flush=True)
    summary = medians(rows)
    write([*rows, *summary], list(summary[0]), options.out)
    for row in summary:
        print(
            f"{row['tokens_per_s']:5.2f} x tokens/s, {row['peak_rss_mb']:.2f} x memory, positions a token "
            f"{row['positions_learned']:.2f} learned and {row['positions_scored']:.2f} scored: {row['rung']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
