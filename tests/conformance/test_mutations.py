"""The comparison with the papers is sharp: each of these small mistakes in the trainers makes it fail.

A mutation replaces a piece of the source of a function, of encore/ or of TRL. One that does not find its
piece any more fails too: look where that code has gone.
"""

import inspect
import textwrap
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from cases import CASES
from compare import TOLERANCE, compare, worst

from encore.learning import policy
from encore.learning.policy import Policy
from encore.learning.rollouts import Rollouts
from encore.learning.scoring import Scorer
from encore.learning.trainer import RolloutTrainer
from encore.models import packing
from encore.objectives import advantages, averages, covariance, grpo
from encore.objectives import process_supervision as supervised
from encore.objectives.advantages import MovingAverage
from encore.rewards import step_rewards

ROUND = Rollouts.round
WINDOW = Rollouts.step_tokens
LOSS_BATCH = RolloutTrainer.loss_batch
LEAN = policy.without_padding
OF_TOTAL = MovingAverage.advantages

CENTERED = "groups - groups.nanmean(dim=1, keepdim=True)"
SCALED = 'if scale != "none"'
OLD = "self.needs_old = in_ratios and (not aligned or self.corrects or in_rewards)"
CLIP = "w.clamp(1 - low, 1 + high)"
CLIP_CISPO = "w.clamp(max=clip_range(args)[1])"
HIGH = "args.epsilon if args.epsilon_high is None else args.epsilon_high"
K3 = "(ref - logp).exp() - (ref - logp) - 1"
SEQUENCE_MEAN = "completion_means(terms, batch.mask).mean()"
RATIO_MEAN = "completion_means(log_ratio, batch.mask)[:, None]"
STEP = "step_tokens(masks, trainer._step, trainer.args.gradient_accumulation_steps)"
SHARE = "sum(mask.sum() for mask in masks) * trainer.args.gradient_accumulation_steps / len(masks)"

# what is wrong, a case that shows it (in "windows" unless said), the function, a piece of it, in its place
# fmt: off
MUTATIONS: list[tuple[str, str, Any, str, str]] = [
    # advantages
    ("the mean of all", "rloo", advantages.leave_one_out, "(group_size - 1)", "group_size"),
    ("sign", "rloo", advantages.leave_one_out, "rewards - others", "others - rewards"),
    ("sign", "raw", advantages.raw, "rewards.clone()", "-rewards"),
    ("the worst", "best", advantages.best, "amax", "amin"),
    ("1 for the best", "best", advantages.best, "rewards, 0.0", "1.0, 0.0"),
    ("the wrong", "online_rft", advantages.positive, "rewards > 0", "rewards <= 0"),
    ("centered", "online_rft", advantages.positive, "dtype)", "dtype) - rewards.mean()"),
    ("all of them", "grpo-above-mean", advantages.above_mean, "clamp_min(0.0)", "clone()"),
    ("the worse", "grpo-above-mean", advantages.above_mean, "clamp_min", "clamp_max"),
    ("own mean", "reinforce", OF_TOTAL, "if self.count", "if False"),
    ("sign of the baseline", "reinforce", OF_TOTAL, "rewards - (", "rewards + ("),
    ("counted twice", "reinforce", MovingAverage.after, "rewards.numel()", "2 * rewards.numel()"),
    ("none", "rloo", ROUND, "batch = self.estimator.estimate(batch, scores)", "pass"),
    ("sign", "grpo", advantages.of_groups, CENTERED, "groups.nanmean(dim=1, keepdim=True) - groups"),
    ("std of a population", "grpo", advantages.std_of_known, "count / (count - 1)", "count / count"),
    ("no std", "grpo", advantages.of_groups, SCALED, "if False"),
    ("std", "dr_grpo", advantages.of_groups, SCALED, "if True"),
    # process supervision
    ("steps before", "grpo-process", supervised.advantages, "flip(1).cumsum(1).flip(1)", "cumsum(1)"),
    ("a token late", "grpo-process", supervised.advantages, "[row, end]", "[row, end + 1]"),
    ("a character early", "grpo-process", step_rewards.verdicts, "[(end - begun,", "[(end - begun - 1,"),
    ("not centered", "grpo-process", supervised.normalised, "rewards - rewards.mean()", "rewards"),
    ("std of a population", "grpo-process", supervised.normalised, ".std()", ".std(correction=0)"),
    ("no answer step", "gspo-token", step_rewards.reader, ", (len(ids) - 1, accuracy)]", "]"),
    # pass@k, negative samples
    ("all choices", "grpo-pass-at-k", advantages.pass_at_k, "comb(wrong - 1, k - 1)", "comb(wrong - 1, k)"),
    ("variance", "grpo-pass-at-k", advantages.pass_at_k, "sqrt(missed", "(missed"),
    ("right", "negative", advantages.negative, "- 1", ""),
    ("equal weights", "w-reinforce", advantages.weighted, "WEIGHT_OF_RIGHT * ", ""),
    # covariance
    ("no mean of A", "grpo-clip-cov", covariance.covariances, "- token_mean(advantage, mask)", ""),
    ("the others", "grpo-clip-cov", grpo.held_back, "terms * ~held", "terms * held"),
    ("upper end", "grpo-clip-cov", covariance.clip_cov, "(covariance < limit.high)", "True"),
    ("lowest", "grpo-kl-cov", covariance.kl_cov, "-torch.inf).flatten()", "torch.inf).flatten().neg()"),
    ("signed", "grpo-kl-cov", grpo.held_back, ".abs()", ""),
    ("no weight", "grpo-kl-cov", grpo.held_back, "limit.weight * ", ""),
    # entropy of tokens
    ("the others", "grpo-bottom-entropy", RolloutTrainer._learning, "~self", "self"),
    ("all", "grpo-top-entropy", RolloutTrainer._learning, "if top < 1 else None", "if top < 0 else None"),
    ("not used", "grpo-top-entropy", grpo.loss, "(batch.learning, batch.correction)", "(batch.correction,)"),
    # ratios
    ("a ratio", "rloo@epochs", grpo.importance_ratio, "logp - logp.detach())", "logp - batch.old)"),
    ("no old policy", "grpo@epochs", Policy.__init__, OLD, "self.needs_old = False"),
    ("sum", "gspo", grpo.importance_ratio, RATIO_MEAN, "(log_ratio * batch.mask).sum(dim=1)[:, None]"),
    ("sum", "gspo-token", averages.completion_means, " / mask.sum(dim=1).clamp(min=1)", ""),
    ("token ratios", "gspo-token", grpo.importance_ratio, "log_s.detach()", "log_ratio.detach()"),
    ("s not frozen", "gspo-token", grpo.importance_ratio, "log_s.detach()", "log_s"),
    ("no noise", "grpo-noise", LOSS_BATCH, "old + minibatch.noise", "old"),
    # clip
    ("none", "grpo", grpo.clipped, CLIP, "w"),
    ("none", "gspo", grpo.clipped, CLIP, "w"),
    ("none", "gspo-token", grpo.clipped, CLIP, "w"),
    ("none", "cispo", grpo.truncated, CLIP_CISPO, "w"),
    ("not frozen", "cispo", grpo.truncated, CLIP_CISPO + ".detach()", CLIP_CISPO),
    ("no higher", "dapo", grpo.clip_range, HIGH, "args.epsilon"),
    ("max for min", "grpo", grpo.clipped, "-torch.min(", "-torch.max("),
    # KL
    ("none", "grpo-kl", grpo.loss, "terms + args.beta * kl", "terms"),
    ("sign", "grpo-kl", grpo.loss, "terms + args.beta", "terms - args.beta"),
    ("k1", "grpo-kl", grpo.k3, K3, "logp - ref"),
    ("times the ratio", "grpo-kl", grpo.loss, "if args.use_bias_correction_kl", "if True"),
    # normalisers
    ("longest", "grpo", grpo.of_completions, SEQUENCE_MEAN, "(terms * batch.mask).mean()"),
    ("unmasked", "grpo-overlong", grpo.of_completions, ".mean()", "[batch.mask.sum(1) > 0].mean()"),
    ("ended ones filtered", "grpo-overlong", Scorer.ended, "in self.ends", "not in self.ends"),
    ("accumulation", "grpo", grpo.of_completions, " / batch.micro_batches", ""),
    ("share of the rollout", "dapo", WINDOW, STEP, SHARE),
    ("share of the rollout", "cispo@minibatches", WINDOW, STEP, SHARE),
    ("a micro-batch", "dapo", averages.step_tokens, "first + window", "first + 1"),
    ("tokens for the cap", "dr_grpo", grpo.of_caps, "(len(terms) * batch.cap)", "batch.mask.sum()"),
    ("longest for all", "bnpo", grpo.of_micro_batch, "batch.mask.sum()", "batch.mask.sum(1).max()"),
    # log-probabilities
    ("of the next token", "grpo", LEAN, "start + steps - 1", "start + steps"),
    ("without the last", "grpo", LEAN, "start + steps < length", "start + steps < length - 1"),
    ("without the first", "grpo", LEAN, "place < start", "place <= start"),
    ("rows mixed up", "grpo@one-batch-twice", packing.in_order, "[torch.argsort(", "[("),
]
# fmt: on


def mutate(monkeypatch: pytest.MonkeyPatch, function: Any, piece: str, other: str) -> None:
    """Give a function another body wherever it is already known by name."""
    function = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(function))
    assert piece in source, f"{function.__qualname__} has no {piece!r} any more"
    body = textwrap.indent(source.replace(piece, other), "    ")
    # `super()` needs a cell of this name
    lines = ["def outer(__class__=None):", body, f"    return {function.__name__}"]
    built: dict[str, Any] = {}
    exec("\n".join(lines), function.__globals__, built)
    mutant = inspect.unwrap(built["outer"]())
    assert isinstance(function, FunctionType)
    monkeypatch.setattr(function, "__code__", mutant.__code__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "function", "piece", "other"),
    [mutation[1:] for mutation in MUTATIONS],
    ids=[f"{case}: {what}" for what, case, *_ in MUTATIONS],
)
def test_a_mistake_is_seen(
    place: str, function: Any, piece: str, other: str, monkeypatch: pytest.MonkeyPatch, folder: Path
):
    case, _, layout = place.partition("@")
    mutate(monkeypatch, function, piece, other)
    seen = CASES[case].watch(folder, layout or "windows")
    assert worst(compare(CASES[case], seen, folder)) > 100 * TOLERANCE


@pytest.mark.slow
def test_an_unchanged_copy_is_no_mistake(monkeypatch: pytest.MonkeyPatch, folder: Path):
    """The way of mutating alone changes nothing."""
    for function in (RolloutTrainer._compute_loss, ROUND, LOSS_BATCH, LEAN):
        mutate(monkeypatch, function, "\n", "\n")
    seen = CASES["gspo-token"].watch(folder, "one-batch-twice")
    assert worst(compare(CASES["gspo-token"], seen, folder)) < TOLERANCE
