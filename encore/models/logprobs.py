"""The log-probability of completions under a model: sums over tokens, in nats, at temperature 1.

Rows are sorted by length and run in batches, padded on the right. A causal model's real tokens never see the
padding after them, so no attention mask is needed, and the batch changes a row's number by rounding alone.
"""

from collections.abc import Sequence
from typing import Any

import torch

from encore.models.packing import padded, shortest_first

BATCH = 64  # rows run at once, or as many as LOGITS allows
LOGITS = 2**28  # most logits at once, a gigabyte: large models have vocabularies of 150 thousand tokens


@torch.no_grad()
def sequence_logps(
    model: Any, prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], batch: int = BATCH
) -> torch.Tensor:
    """Return sum_t log pi(y_t | x, y_<t) of each completion y of a prompt x: (rows,) of float64 on the CPU.

    Prompts and completions are token ids. A completion that came to its end must have the end of sequence,
    and every prompt at least one token. An empty completion gives 0.
    """
    lengths = [len(prompt) + len(completion) for prompt, completion in zip(prompts, completions, strict=True)]
    widest = max(lengths, default=1) * model.config.get_text_config().vocab_size
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    sums = torch.zeros(len(lengths), dtype=torch.float64)
    for rows in shortest_first(lengths, max(1, min(batch, LOGITS // widest))):
        ids = padded([[*prompts[i], *completions[i]] for i in rows])[0].to(device)  # (batch, time)
        begins = torch.tensor([len(prompts[i]) for i in rows], device=device)[:, None]
        ends = torch.tensor([lengths[i] for i in rows], device=device)[:, None]
        place = torch.arange(1, ids.shape[1], device=device)  # position of the token that a column predicts
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
        logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
        logps = logits.gather(2, ids[:, 1:, None]).squeeze(2) - logits.logsumexp(dim=2)
        sums[rows] = (logps * ((place >= begins) & (place < ends))).sum(dim=1, dtype=torch.float64).cpu()
    model.train(was_training)
    return sums
