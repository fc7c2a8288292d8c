"""Stage `dpo`: direct preference optimisation of a policy, by TRL's DPOTrainer.

    python -m encore.stages dpo --config '{"args": …, "pairs": "all"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …
"""

from trl import DPOConfig

from encore.learning.dpo import DPO
from encore.recipe.kinds import DpoStage
from encore.stages.job import Job
from encore.stages.on_pairs import Method, tune
from encore.stages.outcome import Outcome

FORMULA = "parameters x tokens of prompts and completions x (6 policy + 2 reference)"


def run(stage: DpoStage, job: Job) -> Outcome:
    """Train the policy on pairs and save it."""
    return tune(stage, job, Method(DPOConfig, DPO, list, "pairs", 8, FORMULA))
