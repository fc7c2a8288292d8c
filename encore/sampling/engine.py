"""The loading of a model to sample from, as an lm-eval model: by transformers, vLLM or our lean sampler."""

from typing import Any

from encore.models import language_model
from encore.models.language_model import load_for_inference
from encore.recipe.machine import Engine
from encore.runtime.progress import Report
from encore.sampling.hf import HuggingFaceSampler
from encore.sampling.lean import LeanSampler


def load(source: language_model.Source, engine: Engine, seed: int, report: Report) -> Any:
    """Return the lm-eval model of a checkpoint; it calls `report` with the number of finished completions.

    Raises UserError if the model cannot be loaded, or vLLM does not start.
    """
    if engine.backend == "vllm":
        # imported here, because vLLM is an optional package
        from encore.sampling.vllm import VLLMSampler

        words = language_model.load_tokenizer(source)
        return VLLMSampler(words, report, **vllm_arguments(source, engine, seed))
    sampler = LeanSampler if engine.backend == "lean" else HuggingFaceSampler
    return sampler(
        load_for_inference(source, engine.dtype),
        language_model.load_tokenizer(source),
        engine.batch_size,
        report,
    )


def vllm_arguments(source: language_model.Source, engine: Engine, seed: int) -> dict[str, Any]:
    """Return the arguments with which lm-eval's vLLM model is made.

    The dtype is always stated, because vLLM's default `auto` would turn float32 into bfloat16.
    """
    return {
        **(engine.backend_args.model_dump(exclude_unset=True) if engine.backend_args else {}),
        "pretrained": source.place,
        "revision": source.revision,
        "tokenizer_revision": source.revision,
        "trust_remote_code": False,
        "add_bos_token": False,
        "dtype": engine.dtype,
        "load_format": "safetensors",
        "seed": seed,
        "batch_size": "auto",
    }
