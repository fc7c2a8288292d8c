"""lm-eval's vLLM model, extended to keep the tokens of each completion and how it ended.

It needs the extra `vllm`.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.vllm_causallms import VLLM
from vllm import SamplingParams

from encore.data.token_ids import prompt_ids
from encore.errors import UserError, whole
from encore.runtime.progress import Report
from encore.sampling.completion import answered, completed
from encore.sampling.tools import ToolInWorld
from encore.sampling.turns import converse, room


class VLLMSampler(VLLM):
    """A sampler with vLLM; each call of `generate_until` is one lm-eval task and one batch."""

    tool: ToolInWorld | None = None  # a tool that the model may call

    def __init__(self, tokenizer: Any, report: Report, **arguments: Any) -> None:
        try:
            super().__init__(**arguments)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"evals.backend: vLLM does not start: {whole(error)}") from error
        # lm-eval would load the tokenizer anew, without the BOS that ours may put before texts
        self.tokenizer = tokenizer
        self.report = report
        self.ends: list[int] = []

    def end_with(self, also: Sequence[int]) -> None:
        """Set further tokens, `also`, that end completions besides those that vLLM reads itself."""
        self.ends = [*also]

    def tok_encode(self, string: Any, add_special_tokens: bool | None = None, **options: Any) -> Any:
        if add_special_tokens is not None or not isinstance(string, str):
            return super().tok_encode(string, add_special_tokens, **options)
        # a text whose likelihood is scored begins as prompts do
        return prompt_ids([string], self.tokenizer)[0]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        options, stops, limit = self.modify_gen_kwargs(requests[0].args[1], eos=self.tokenizer.eos_token)
        prompts = prompt_ids([request.args[0] for request in requests], self.tokenizer)
        results = room(self.tool.tool if self.tool else None, self.tokenizer)
        if (longest := max(map(len, prompts))) + limit + results > self.max_length:
            raise UserError(
                f"max_gen_toks: {limit + results} and the longest prompt, {longest} tokens, exceed the "
                f"model's {self.max_length} positions"
            )

        def draw(contexts: list[list[int]], cap: int, also: list[int]) -> list[Any]:
            asked = SamplingParams(max_tokens=cap, stop=stops, stop_token_ids=[*self.ends, *also], **options)
            outputs = self._model_generate(requests=contexts, generate=True, sampling_params=asked)
            return [output.outputs[0] for output in outputs]

        ends: set[int] = set()  # tokens that have ended a completion; vLLM knows the checkpoint's own ends

        def turn(contexts: list[list[int]], cap: int, also: list[int]) -> tuple[list[list[int]], None]:
            drawn = draw(contexts, cap, also)
            ends.update({each.token_ids[-1] for each in drawn if _ended(each)} - {*also})
            return [list(each.token_ids) for each in drawn], None

        if self.tool:
            talks = converse(prompts, limit, turn, self.tool, self.tokenizer)
            self.report(len(talks), len(talks))
            pairs = zip(talks, prompts, strict=True)
            return [answered(talk, ends, prompt, self.tokenizer) for talk, prompt in pairs]
        first = draw(prompts, limit, [])
        self.report(len(first), len(first))
        return [
            # vLLM's own text is not used, because it is decoded together with the prompt
            completed(list(each.token_ids), _ended(each), stops, prompt, self.tokenizer)
            for prompt, each in zip(prompts, first, strict=True)
        ]


def _ended(output: Any) -> bool:
    """Return whether a completion of vLLM was ended by a token, not by a stop string or the limit."""
    return output.finish_reason == "stop" and not isinstance(output.stop_reason, str)
