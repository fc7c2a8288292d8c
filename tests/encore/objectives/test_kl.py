"""The KL of responses, from that of their tokens."""

import torch

from encore.objectives.kl import kl_penalty


def test_the_penalty_is_a_sum_over_tokens_and_a_mean_over_responses():
    log_probs = torch.tensor([[-1.0, -2.0, -3.0], [-1.0, -1.0, -9.0]])
    ref = torch.tensor([[-1.5, -2.0, -4.0], [-3.0, -1.0, -1.0]])
    mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    expected = ((0.5 + 0.0 + 1.0) + 2.0) / 2
    torch.testing.assert_close(kl_penalty(log_probs, ref, "k1", mask), torch.tensor(expected))
