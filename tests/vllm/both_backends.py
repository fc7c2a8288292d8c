"""`python both_backends.py METRICS_JSON…`: transformers and vLLM read, complete and score the same prompts.

Writes read.json beside each metrics.json.
"""

import json
import sys
from pathlib import Path
from typing import Any

import typed
from lm_eval.api.instance import Instance

from encore.data import forms
from encore.models import language_model
from encore.recipe.machine import Engine
from encore.sampling import engine

QUESTIONS = ["What is 3 + 4?", " It is 7.\n", "<think>"]
GREEDY = {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": 12}
BACKENDS: dict[str, dict[str, Any]] = {
    "hf": {"batch_size": 8},
    "vllm": {"backend": "vllm", "backend_args": {"max_model_len": 256, "max_num_seqs": 8}},
}


def read(place: Path) -> dict[str, Any]:
    source = language_model.locate(place)
    words = language_model.load_tokenizer(source)
    template: list[dict[str, Any]] = [{"template": "User: {question}\nAssistant:"}]
    said = template + ([{"chat": True}] if words.chat_template else [])
    texts = [forms.of(typed.form(form), words).fill(question) for form in said for question in QUESTIONS]
    made: dict[str, Any] = {"bos": words.bos_token_id}
    made["tokenizer"] = words(texts[: len(QUESTIONS)])["input_ids"]
    if words.chat_template:
        talks = [[{"role": "user", "content": question}] for question in QUESTIONS]
        made["tokenizer"] += words.apply_chat_template(talks, add_generation_prompt=True)["input_ids"]
    for name, options in BACKENDS.items():
        lm = engine.load(source, Engine(**options), 0, lambda done, total: None)
        made[name] = {"engine": watched(lm)} if name == "vllm" else {}
        drawn = lm.generate_until([Instance("generate_until", {}, (text, GREEDY), 0) for text in texts])
        pairs = [(text, " It is 7.") for text in texts]
        scored = lm.loglikelihood([Instance("loglikelihood", {}, pair, 0) for pair in pairs])
        made[name]["prompts"] = [list(one.context) for one in drawn]
        made[name]["completions"] = [[str(one), list(one.ids), one.tokens, one.truncated] for one in drawn]
        made[name]["likelihoods"] = [value for value, _ in scored]
    return made


def watched(lm: Any) -> list[list[int]]:
    """The prompts that vLLM says it has completed; filled as it does."""
    seen: list[list[int]] = []
    plain = lm.model.generate

    def generate(*args: Any, **options: Any) -> Any:
        outputs = plain(*args, **options)
        if not seen:  # the first call: completions, not likelihoods
            seen.extend(list(output.prompt_token_ids) for output in outputs)
        return outputs

    lm.model.generate = generate
    return seen


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        place.with_name("read.json").write_text(json.dumps(read(place)))
