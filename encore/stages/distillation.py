"""Stage `distillation`: on-policy distillation of a policy from a teacher.

    python -m encore.stages distillation --config '{"task": …, "template": …, "divergence": …, "args": …}' \\
        --input policy=results/…/metrics.json --input teacher=results/…/metrics.json …

The policy samples completions, and learns at each of their tokens what the teacher would say next
(encore/learning/distillation.py). With `hindsight` the teacher is the policy itself, which is shown a right
response of the group (encore/learning/hindsight.py). The rollouts are made as in stage `grpo`, but nothing
learns from rewards: the rewards that the stage names are measured, and so is accuracy. With `on_policy` below
1 the teacher samples a share of the rollouts. Policy and teacher must have the same tokenizer. `args` has the
fields of TRL's GRPOConfig that concern rollouts, batches and the optimizer.
"""

from functools import partial
from typing import Any

from encore.data import forms
from encore.data.token_ids import prompt_ids
from encore.learning.distillation import Teacher
from encore.learning.fit import clean
from encore.learning.hindsight import Hindsight, Told
from encore.learning.rollouts import Options
from encore.learning.trainer import Method
from encore.models import lora
from encore.models.experts import idle
from encore.recipe.kinds import DistillationStage
from encore.recipe.kinds.distillation import DIVERGENCES, TEACHER
from encore.rewards import feedback
from encore.runtime import curves, health
from encore.stages import rollout_args, setup
from encore.stages.job import Job
from encore.stages.outcome import Outcome
from encore.stages.policy import load_reference, loading_options, positions

FORMULA = (
    "tokens of prompts and completions x (2 x parameters of policy and teacher, by what each samples,"
    " + per iteration 6 x policy parameters, forward and backward, + 2 x teacher parameters); the response"
    " that a teacher with hindsight reads is not counted"
)
# metrics whose mean over the first fifth of the steps is reported too
AT_FIRST = ("divergence", "rewards/accuracy/mean")


def run(stage: DistillationStage, job: Job) -> Outcome:
    """Train the policy and save it; times and completions go beside metrics.json."""
    with rollout_args.started(stage, job) as (args, _):
        return _train(stage, job, args)


def _train(stage: DistillationStage, job: Job, args: Any) -> Outcome:
    """Do the work of `run` once `args`, a GRPOConfig, exists."""
    assert stage.divergence is not None
    options = loading_options(stage, args)
    ready = setup.prepared(stage, job, args, stage.caps_by_step, {}, measured=("accuracy",))
    model = load_reference(ready.policy, job.inputs, role=TEACHER, **options)
    form, shown = forms.of(stage.form, ready.policy.tokenizer), stage.hindsight
    hindsight = None if shown is None else Hindsight(shown, form, _told(stage))
    teacher = Teacher(model, DIVERGENCES[stage.divergence], stage.on_policy, hindsight)
    log = setup.opened(job)
    checks = setup.checks(ready, job, args.max_completion_length)
    if hindsight:
        checks += [_room(hindsight, ready, args.max_completion_length)]
    method = Method(Options(log=log), lean=stage.sampler == "lean", teacher=teacher)
    trainer = ready.trainer(method)
    done = ready.policy.train(trainer, stage, job)
    ready.policy.save(job.workdir)

    curve, scalars = setup.record(job, done.history, trainer.parts.measures.ratios, log)
    parameters, of_teacher = lora.parameters(ready.policy.model), lora.parameters(model)
    counted = parameters - idle(ready.policy.model), of_teacher - idle(model)
    return Outcome(
        metrics={
            **scalars,
            **curves.first_fifths(curve, AT_FIRST),
            "parameters": parameters,
            "teacher_parameters": of_teacher,
            **setup.skipped(ready.tasks),
        },
        health=[*checks, *health.training(curve, scalars, done.precision)],
        fit=done,
        flops_a_token=operations(*counted, stage.on_policy, args.num_iterations),
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, job.workdir),
    )


def operations(policy: float, teacher: float, on_policy: float, iterations: int) -> float:
    """Return the operations for a token, of which the policy samples the share `on_policy`: `FORMULA`.

    `policy` and `teacher` are the numbers of parameters that a token passes through.
    """
    sampling = on_policy * policy + (1 - on_policy) * teacher
    return 2 * sampling + iterations * (6 * policy + 2 * teacher)


def _told(stage: DistillationStage) -> Told | None:
    """Return what the teacher reads without a right response; None if the stage has no feedback."""
    return None if stage.feedback is None else Told(stage.feedback, feedback.of_task(stage.questions))


def _room(hindsight: Hindsight, ready: setup.Setup, cap: int) -> health.Check:
    """Check that the model's context holds the longest prompt of the teacher. Raises UserError if not.

    `cap`: the most tokens of a completion, and so of the response or the feedback that the prompt shows.
    """
    rows = ready.dataset.to_list()
    prompts = [hindsight.prompt(row, "") for row in rows]
    if hindsight.told:
        prompts += [hindsight.prompt_with_feedback(row, "") for row in rows]
    longest = max(map(len, prompt_ids(prompts, ready.policy.tokenizer)))
    (check,) = health.stop_at_errors([health.context(longest + cap, cap, positions(ready.policy.model))])
    return check | {"check": "context/hindsight"}
