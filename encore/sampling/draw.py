"""The drawing of a policy's completions for a stage that keeps some or all of them."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lm_eval.api.instance import Instance

from encore.models.experts import idle
from encore.recipe.args import DrawingArgs
from encore.recipe.machine import Engine
from encore.runtime.progress import Progress, reporter
from encore.sampling import engine
from encore.sampling.completion import Completion

FORMULA = (
    "2 x parameters x tokens of prompts and completions (generation); 0 where the engine hides its model"
)


@dataclass(frozen=True)
class Drawn:
    """The completions of several prompts: `num_generations` of the first prompt, then of the next."""

    completions: Sequence[Completion]
    tokens: int  # number of tokens of all completions and their prompts
    parameters: int  # parameters of the policy that a token uses; 0 if the engine hides it


def draw(
    prompts: Sequence[str],
    args: DrawingArgs,
    source: Any,
    ends: Sequence[int],
    sampled_by: Engine,
    seed: int,
    progress: Progress,
) -> Drawn:
    """Sample completions of `prompts` from the model `source`; the same seed gives the same completions.

    `ends`: ids of tokens that end a completion, besides the model's own end-of-sequence tokens. `sampled_by`:
    the sampler, such as vLLM, with its settings.
    """
    generation = {
        "until": [],  # only the end-of-sequence token ends a completion
        "do_sample": True,
        "temperature": args.temperature,
        "top_p": args.top_p,
        "top_k": 0,
        "max_gen_toks": args.max_completion_length,
    }
    each = [prompt for prompt in prompts for _ in range(args.num_generations)]
    requests = [
        Instance(request_type="generate_until", doc={}, arguments=(prompt, generation), idx=0)
        for prompt in each
    ]
    torch.manual_seed(seed)
    with contextlib.redirect_stdout(sys.stderr):  # lm-eval prints to stdout; `progress` keeps the true stdout
        lm = engine.load(source, sampled_by, seed, reporter(progress, "sampled"))
        lm.end_with(ends)
        completions = lm.generate_until(requests)
    tokens = sum(len(text.context) + text.tokens for text in completions)
    shown = hasattr(lm.model, "num_parameters")
    parameters = int(lm.model.num_parameters() - idle(lm.model)) if shown else 0
    return Drawn(completions, tokens, parameters)
