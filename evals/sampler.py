"""lm-eval's Hugging Face model, made to keep what it throws away: each completion's token count and ending.

What differs from `HFLM.generate_until`: it returns `Completion`s; it stops at the end-of-sequence token inside
`generate` instead of decoding every row after every token (lm-eval's MultiTokenEOSCriteria); special tokens are
not dropped from the text; and a prompt that does not fit is an error instead of being cut from the left.
"""

from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import normalize_gen_kwargs, postprocess_generated_text
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from evals.completion import Completion, Report
from recipes.errors import UserError


class HuggingFaceSampler(HFLM):
    """Draws completions with `transformers`; one lm-eval task per call of `generate_until`."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batch_size: int, report: Report
    ) -> None:
        super().__init__(
            pretrained=model, tokenizer=tokenizer, backend="causal", batch_size=batch_size, add_bos_token=False
        )
        self.report = report
        ends = model.generation_config.eos_token_id if model.generation_config else None
        ends = tokenizer.eos_token_id if ends is None else ends
        self.ends = set(ends if isinstance(ends, list) else [ends])
        # a checkpoint's own defaults (top_k, repetition_penalty, …) would change what is measured
        model.generation_config = GenerationConfig(eos_token_id=sorted(self.ends), pad_token_id=tokenizer.pad_token_id)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        options: dict[str, Any] = dict(normalize_gen_kwargs(requests[0].args[1]))
        stops, limit = options.pop("until"), options.pop("max_gen_toks")
        prompts = [request.args[0] for request in requests]
        sizes = {text: len(self.tok_encode(text)) for text in set(prompts)}
        if (longest := max(sizes.values())) + limit > self.max_length:
            raise UserError(
                f"max_gen_toks: {limit} and the longest prompt, {longest} tokens, exceed the model's "
                f"{self.max_length} positions"
            )
        # prompts of one length beside each other need little padding; the sort is stable, so deterministic
        order = sorted(range(len(prompts)), key=lambda i: -sizes[prompts[i]])
        done: list[str] = [""] * len(prompts)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            context, mask = self.tok_batch_encode([prompts[i] for i in batch])
            width = context.shape[1]
            rows = self._model_generate(
                context=context.to(self.device),
                attention_mask=mask.to(self.device),
                stop=stops,
                max_length=width + limit,
                **options,
            )
            for i, tokens in zip(batch, rows[:, width:].tolist(), strict=True):
                done[i] = self._completion(tokens, stops)
            self.report(start + len(batch), len(order))
        return done

    def _completion(self, tokens: list[int], stops: list[str]) -> Completion:
        """Cut a padded row at its end-of-sequence token (counted, not shown) or before its first stop string."""
        end = next((i for i, token in enumerate(tokens) if token in self.ends), None)
        whole = self.tokenizer.decode(tokens[:end], skip_special_tokens=False)
        text = postprocess_generated_text(whole, stops, None)
        if text != whole:
            return Completion(text, tokens=len(self.tok_encode(text)), truncated=False)
        return Completion(text, tokens=len(tokens) if end is None else end + 1, truncated=end is None)
