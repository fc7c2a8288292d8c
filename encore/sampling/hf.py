"""lm-eval's Hugging Face model, extended to keep the tokens of each completion and how it ended.

`generate_until` differs from the method of `HFLM`:

- it returns `Completion`s, whose text keeps special tokens;
- the end-of-sequence token stops a row inside `generate`, where lm-eval decodes every row after every token;
- completions grow in rounds, and ended ones leave the batch between two rounds, because a batch costs as much
  as its longest row (0.5M parameters, one core, mean length 26: 0.8 of the time at a cap of 64, 0.3 at 128);
- a batch is as large as a GPU's memory has room for, or 8 GiB on a CPU, unless the recipe sets a size;
- texts whose likelihood is scored also come in batches as large as the memory has room for, on a CPU too;
- a prompt that does not fit is an error and is not cut from the left.
"""

from collections.abc import Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from lm_eval.models.utils import normalize_gen_kwargs
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from encore.data.token_ids import end_ids, prompt_ids
from encore.errors import UserError
from encore.runtime.progress import Report
from encore.sampling.completion import Completion, answered, completed
from encore.sampling.memory import MOST, free_bytes, rows_at_once, scored_at_once
from encore.sampling.tools import ToolInWorld
from encore.sampling.turns import converse, room

Options = dict[str, Any]  # options of drawing, by lm-eval's names
FIRST_ROUND = 32  # tokens of the first round; each further round doubles the completion


class HuggingFaceSampler(HFLM):
    """A sampler with `transformers`; each call of `generate_until` must be about a single lm-eval task."""

    tool: ToolInWorld | None = None  # a tool that the model may call

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        batch_size: int | None,
        report: Report,
    ) -> None:
        super().__init__(
            pretrained=model,
            tokenizer=tokenizer,
            backend="causal",
            batch_size=batch_size or MOST,
            add_bos_token=False,
        )
        self.report = report
        self.given = batch_size
        self.own_ends = self.ends = {*end_ids(model.generation_config, tokenizer)}
        # a checkpoint's own defaults (top_k, repetition_penalty, …) would change what is measured
        model.generation_config = GenerationConfig(
            eos_token_id=sorted(self.ends), pad_token_id=tokenizer.pad_token_id
        )

    def end_with(self, also: Sequence[int]) -> None:
        """Set further tokens, `also`, that end completions besides the checkpoint's own end tokens."""
        self.ends = self.own_ends | {*also}
        self.model.generation_config.eos_token_id = sorted(self.ends)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        options: Options = dict(normalize_gen_kwargs(requests[0].args[1]))
        stops, limit = options.pop("until"), options.pop("max_gen_toks")
        if self.tool:
            return self.answered_by(self.tool, requests, options, limit)
        prompts = self.prompts(requests, limit)
        drawn: list[list[int]] = [[] for _ in prompts]
        done: list[str] = [""] * len(prompts)
        # rows of similar length in a batch need little padding; the sort is stable, and so deterministic
        pending = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
        longest = len(prompts[pending[0]]) if pending else 0
        length = 0
        while pending:
            # each round reads the prompts again, which costs more than it saves if they are long
            length = limit if longest >= limit else min(max(2 * length, FIRST_ROUND), limit)
            ended = set()
            size = self.at_once(len(prompts[pending[0]]) + length)
            for start in range(0, len(pending), size):
                batch = pending[start : start + size]
                contexts = [prompts[i] + drawn[i] for i in batch]
                rows = self._continue(contexts, length - len(drawn[batch[0]]), stops, options)
                for i, row in zip(batch, rows, strict=True):
                    drawn[i] += row
                    completion = self._completion(drawn[i], stops, prompts[i])
                    if length == limit or not completion.truncated:
                        done[i] = completion
                        ended.add(i)
                self.report(len(prompts) - len(pending) + len(ended), len(prompts))
            pending = [i for i in pending if i not in ended]
        return done

    def answered_by(
        self, used: ToolInWorld, requests: list[Instance], options: Options, limit: int
    ) -> list[str]:
        """Return completions with the tool's answers; the model writes at most `limit` tokens of each."""
        prompts = self.prompts(requests, limit + room(used.tool, self.tokenizer))

        def draw(contexts: list[list[int]], cap: int, also: list[int]) -> tuple[list[list[int]], None]:
            return self.continuations(contexts, cap, {*also}, options), None

        talks = converse(prompts, limit, draw, used, self.tokenizer)
        self.report(len(prompts), len(prompts))
        pairs = zip(talks, prompts, strict=True)
        return [answered(talk, self.ends, prompt, self.tokenizer) for talk, prompt in pairs]

    def continuations(
        self, contexts: list[list[int]], cap: int, also: set[int], options: Options
    ) -> list[list[int]]:
        """Return the turns of any number of contexts, drawn in batches that fit into memory."""
        drawn: list[list[int]] = []
        size = self.at_once(max(map(len, contexts)) + cap)
        for start in range(0, len(contexts), size):
            drawn += self.turn(contexts[start : start + size], cap, also, options)
        return drawn

    def turn(self, contexts: list[list[int]], cap: int, also: set[int], options: Options) -> list[list[int]]:
        """Return the token ids that the model adds to each of `contexts`, at most `cap`.

        A turn ends with an end-of-sequence token or with a token of `also`, which is included.
        """
        ends = self.ends | also
        self.model.generation_config.eos_token_id = sorted(ends)
        rows = self._continue(contexts, cap, [], options)
        self.model.generation_config.eos_token_id = sorted(self.ends)
        places = [next((i + 1 for i, token in enumerate(row) if token in ends), len(row)) for row in rows]
        return [row[:place] for row, place in zip(rows, places, strict=True)]

    def prompts(self, requests: list[Instance], limit: int) -> list[list[int]]:
        """Return the token ids of each request's prompt.

        Raises UserError if a prompt and `limit` further tokens do not fit into the model's positions.
        """
        texts = list(dict.fromkeys(request.args[0] for request in requests))
        encoded = dict(zip(texts, prompt_ids(texts, self.tokenizer), strict=True))
        if (longest := max(map(len, encoded.values()))) + limit > self.max_length:
            raise UserError(
                f"max_gen_toks: {limit} and the {longest} tokens of the longest prompt exceed the model's "
                f"{self.max_length} positions"
            )
        return [encoded[request.args[0]] for request in requests]

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **options: Any) -> list[int]:
        if add_special_tokens is not None:
            return super().tok_encode(string, add_special_tokens, **options)
        # a text whose likelihood is scored begins as prompts do
        return prompt_ids([string], self.tokenizer)[0]

    def _loglikelihood_tokens(self, requests: list[Any], *args: Any, **options: Any) -> Any:
        """Score texts in batches whose logits fit into memory."""
        if not self.given and requests:
            width = max(len(context) + len(text) for _, context, text in requests)
            vocabulary = self.model.config.get_text_config().vocab_size
            self.batch_size_per_gpu = scored_at_once(vocabulary, width, free_bytes(self.device))
        return super()._loglikelihood_tokens(requests, *args, **options)

    def at_once(self, width: int) -> int:
        """Return how many rows fit into a batch; a row has `width` tokens, prompt and completion together."""
        if self.given:
            return self.given
        return rows_at_once(self.model.config, width, self.model.dtype.itemsize, free_bytes(self.device))

    def _continue(
        self, contexts: list[list[int]], count: int, stops: list[str], options: Options
    ) -> list[list[int]]:
        """Return up to `count` further tokens for each context, padded after an end-of-sequence token."""
        padded = self.tokenizer.pad({"input_ids": contexts}, padding_side="left", return_tensors="pt").to(
            self.device
        )
        width = padded["input_ids"].shape[1]
        rows = self._model_generate(
            context=padded["input_ids"],
            attention_mask=padded["attention_mask"],
            stop=stops,
            max_length=width + count,
            **options,
        )
        return rows[:, width:].tolist()

    def _completion(self, tokens: list[int], stops: list[str], context: Sequence[int] = ()) -> Completion:
        """Return the completion of sampled `tokens`, up to the end-of-sequence token or a stop string.

        The end-of-sequence token is counted, but left out of the text.
        """
        end = next((i for i, token in enumerate(tokens) if token in self.ends), None)
        ids = tokens if end is None else tokens[: end + 1]
        return completed(ids, end is not None, stops, context, self.tokenizer)
