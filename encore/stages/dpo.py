"""Stage `dpo`: direct preference optimisation of a policy, by TRL's DPOTrainer.

    python -m encore.stages dpo --config '{"args": …, "pairs": "all"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …
"""

from functools import partial

from trl import DPOConfig

from encore.learning.dpo import DPO, without_reference
from encore.learning.orpo import ORPO
from encore.recipe import loss_types
from encore.recipe.kinds import DpoStage
from encore.stages.job import Job
from encore.stages.on_pairs import Method, tune
from encore.stages.outcome import Outcome

TOKENS = "parameters x tokens of prompts and completions"


def run(stage: DpoStage, job: Job) -> Outcome:
    """Train the policy on pairs and save it."""
    if stage.reference_free:
        examples = partial(without_reference, margin=stage.simpo_gamma / stage.args.beta)
        trainer = ORPO if loss_types.ORPO in stage.args.loss_type else DPO
        return tune(stage, job, Method(DPOConfig, trainer, examples, "pairs", 6, f"6 x {TOKENS}"))
    return tune(stage, job, Method(DPOConfig, DPO, list, "pairs", 8, f"{TOKENS} x (6 policy + 2 reference)"))
