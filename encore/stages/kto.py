"""Stage `kto`: Kahneman-Tversky optimisation of a policy, by TRL's KTOTrainer.

    python -m encore.stages kto --config '{"args": …, "pairs": "all", "unpaired": true}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …

The chosen completion of a pair is desirable and the rejected one is not; `unpaired` keeps one of the two.
"""

from trl import KTOConfig

from encore.learning.kto import KTO, completions, single_completions
from encore.recipe.kinds import KtoStage
from encore.stages.job import Job
from encore.stages.on_pairs import Method, tune
from encore.stages.outcome import Outcome

FORMULA = (
    "parameters x tokens of prompts and completions x (6 policy + 2 reference, and 2 each for the KL of the "
    "prompts with other completions)"
)


def run(stage: KtoStage, job: Job) -> Outcome:
    """Train the policy on completions and save it."""
    examples = single_completions if stage.unpaired else completions
    return tune(stage, job, Method(KTOConfig, KTO, examples, "completions", 12, FORMULA))
