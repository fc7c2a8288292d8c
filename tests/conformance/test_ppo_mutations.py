"""The comparison of PPO with its papers is sharp: each of these small mistakes makes it fail."""

from pathlib import Path
from typing import Any

import ppo_cases
import pytest
from compare import TOLERANCE, worst
from test_mutations import mutate

from encore.learning.critic import LearningCritic
from encore.learning.estimators import Gae
from encore.learning.ptx import PtxLoss
from encore.learning.scoring import Scorer
from encore.learning.trainer import RolloutTrainer
from encore.models import critic, packing
from encore.objectives import gae, losses

RETURNS = "returns = estimates + values"
WRONG_RETURNS = "returns = gae.whiten(estimates, mask) + values"
ROLLOUT, VALUE, PTX = Gae.estimate, LearningCritic.loss, PtxLoss.loss

# what is wrong, a case that shows it (in "windows" unless said), the function, a piece of it, in its place
# fmt: off
MUTATIONS: list[tuple[str, str, Any, str, str]] = [
    # rewards
    ("no KL", "plain", gae.token_rewards, "-kl_coef * log_ratio * mask", "0 * log_ratio"),
    ("sign of the KL", "plain", gae.token_rewards, "-kl_coef", "kl_coef"),
    ("score at the first token", "plain", gae.token_rewards, "(lengths - 1).clamp(min=0)", "(lengths * 0)"),
    ("no penalty", "penalty", gae.end_scores, "scores - penalty", "scores - 0"),
    ("penalty for those that ended", "penalty", gae.end_scores, "~ended", "ended"),
    ("no EOS trick", "eos-trick", gae.end_scores, "instead is not None", "False"),
    ("the last but one token ends it", "penalty", Scorer.ended, "tokens[-1]", "tokens[-2]"),
    # whitening
    ("rewards not whitened", "ziegler", ROLLOUT, "args.whiten_rewards", "False"),
    ("rewards shifted", "ziegler", ROLLOUT, "shift_mean=False", "shift_mean=True"),
    ("advantages not whitened", "plain", ROLLOUT, "args.whiten_advantages", "False"),
    ("whitened with the padding", "plain", gae.whiten, "mask.sum()", "torch.ones_like(mask).sum()"),
    # advantages and returns
    ("no lambda", "plain", gae.advantages, "gamma * lam", "gamma"),
    ("no gamma", "plain", gae.advantages, "gamma * following", "following"),
    ("returns of whitened advantages", "plain", ROLLOUT, RETURNS, WRONG_RETURNS),
    ("values of the next state", "plain", critic.token_values, "start + steps - 1", "start + steps"),
    ("rows mixed up", "plain@one-batch-twice", packing.in_order, "[torch.argsort(", "[("),
    # losses
    ("no value clip", "plain@epochs", losses.value_terms, "if not clip", "if True"),
    ("min for max", "plain@epochs", losses.value_terms, "torch.maximum", "torch.minimum"),
    ("no half", "plain", losses.value_terms, "torch.maximum(plain, held) / 2", "torch.maximum(plain, held)"),
    ("clipped around the return", "plain@epochs", losses.value_terms, "held = (old +", "held = (returns +"),
    ("no coefficient", "plain", VALUE, "self.ppo.vf_coef * value", "value"),
    ("share of the rollout", "plain", VALUE, "batch.step_tokens.clamp(min=1)", "(4 * batch.mask.sum())"),
    ("mean over the batch", "plain", VALUE, "/ batch.step_tokens.clamp(min=1)", "/ batch.mask.numel()"),
    ("no ptx", "ptx", RolloutTrainer._compute_loss, "parts.extra_losses:", "parts.extra_losses[:1]:"),
    ("ptx of each micro-batch", "ptx", PTX, "pretraining / batch.micro_batches", "pretraining"),
    ("ptx of the same documents", "ptx", PTX, "self.ptx.loss(model, number)", "self.ptx.loss(model, 0)"),
    ("gradients of all steps", "plain", LearningCritic.step, "self.optimizer.zero_grad()", "None"),
]
# fmt: on


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
    seen = ppo_cases.run(folder, case, layout or "windows")
    policy, value, _ = ppo_cases.outcomes(seen, folder)
    assert max(worst(policy), worst(value)) > 100 * TOLERANCE
