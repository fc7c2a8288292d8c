"""The critic: a separate network that predicts, before each token, the reward still to come.

V(s_t) is a linear head on the hidden state of the token before t, as a reward model's score is a linear head
on the hidden state of the last token. The network is separate so that a critic that has learnt little does
not harm the policy (Stiennon et al. 2020, §3.4).
"""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from encore.models import lora
from encore.models.language_model import disable_dropout
from encore.models.packing import in_order, longest_first, to_the_left
from encore.models.reward_model import parts, read_out
from encore.models.sharded import own_part
from encore.recipe.kinds.stage import Lora

# added to the seed; otherwise a policy from scratch and its critic would start with equal weights
AWAY = 7_919


class Critic(nn.Module):
    """A network that returns a value (w·h - bias) / scale at each position; `bias` and `scale` stay fixed."""

    def __init__(self, backbone: Any, head: nn.Linear, bias: float = 0.0, scale: float = 1.0):
        super().__init__()
        self.backbone, self.head, self.bias, self.scale = backbone, head, bias, scale
        self._no_split_modules = backbone._no_split_modules  # classes of layers, as transformers names them

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return all values, (rows, time) -> (rows, time). Real tokens come first, so there is no mask."""
        hidden = self.backbone(input_ids=ids, use_cache=False).last_hidden_state
        return (read_out(self.head, hidden) - self.bias) / self.scale


def from_reward_model(model: Any, member: int = 0) -> Critic:
    """Return a critic that starts as a copy of a RewardModel's member and scores every prefix."""
    backbone, head = copy.deepcopy(parts(model.members[member]))
    return _trainable(Critic(backbone, head, model.bias[member], model.scale[member]))


def from_policy(policy: Any, seed: int) -> Critic:
    """Return a critic with a copy of a causal language model's backbone, and a new head."""
    return _trainable(Critic(copy.deepcopy(policy.base_model), _new_head(policy, seed)))


def from_nothing(policy: Any, seed: int) -> Critic:
    """Return a randomly initialised critic of the policy's shape."""
    torch.manual_seed(seed + AWAY)
    backbone = type(policy.base_model)(copy.deepcopy(policy.config)).to(policy.dtype)
    return _trainable(Critic(backbone, _new_head(policy, seed)))


def _new_head(policy: Any, seed: int) -> nn.Linear:
    """Return a head without a bias, with weights from N(0, 1/(d + 1)), where d is the hidden size.

    This is the initialisation of Stiennon et al. (2020, App. B.1).
    """
    size = policy.config.get_text_config().hidden_size
    head = nn.Linear(size, 1, bias=False, dtype=policy.dtype)
    nn.init.normal_(head.weight, std=(size + 1) ** -0.5, generator=torch.Generator().manual_seed(seed))
    return head


def with_adapters(critic: Critic, key: Lora, seed: int) -> Critic:
    """Return `critic` with adapters on its backbone, by a stage's key `lora`.

    Only the adapters and the head are trained.
    """
    critic.backbone = lora.adapted(critic.backbone, key, seed + AWAY)
    return critic


def learnt(critic: Critic) -> dict[str, torch.Tensor]:
    """Return the weights that training changes, by name; of a sharded critic, this process's part."""
    return {
        name: own_part(weight.detach()) for name, weight in critic.named_parameters() if weight.requires_grad
    }


def set_learnt(critic: Critic, weights: Mapping[str, torch.Tensor]) -> None:
    """Set the weights that `learnt` returned."""
    parts = learnt(critic)
    for name, weight in weights.items():
        parts[name].copy_(weight)


def _trainable(critic: Critic) -> Critic:
    """Return `critic` with gradients on and dropout off; dropout would change values by chance.

    Weights of 4 bits, which lie below adapters, get no gradients.
    """
    for weight in critic.parameters():
        weight.requires_grad_(weight.is_floating_point())
    return disable_dropout(critic).train()


def token_values(critic: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int, rows: int) -> torch.Tensor:
    """Return V before each of the last `keep` tokens: (batch, keep), 0 at padding.

    `ids`, `mask`: (batch, time), with prompts padded on the left and completions on the right. The rows run
    in pieces of similar length, each of at most `rows` rows.
    """
    starts = mask[:, :-keep].sum(dim=1)  # (batch,): where each completion begins
    ids, lengths = to_the_left(ids, mask)
    steps = torch.arange(keep, device=ids.device)
    at_tokens, pieces = [], longest_first(lengths, rows)
    for piece in pieces:
        width = max(2, int(lengths[piece[0]]))
        values = critic(ids[piece, : width - 1])  # no value is needed after the last token
        start = starts[piece, None]
        column = (start + steps - 1).clamp(min=0, max=width - 2)
        at_tokens.append(values.gather(1, column) * (start + steps < lengths[piece, None]))
    return in_order(at_tokens, pieces)
