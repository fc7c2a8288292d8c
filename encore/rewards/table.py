"""The rewards of completions by several reward functions, as a trainer computes them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from encore.runtime.reward_checks import Reward, Row, score


def reward_table(
    functions: Sequence[Reward],
    rows: Sequence[Row],
    texts: Sequence[str],
    ids: Sequence[Sequence[int]],
    **options: Any,
) -> Tensor:
    """Return the rewards of completions, (completions, functions) of float32; None becomes NaN.

    `rows` are the columns of the prompts, `ids` the completions as tokens. `options` are the arguments that a
    trainer adds: `trainer_state` and `log_metric`.
    """
    values = [score(function, rows, texts, ids, **options) for function in functions]
    columns = [[float("nan") if value is None else value for value in column] for column in values]
    return torch.tensor(columns, dtype=torch.float32).T.contiguous()
