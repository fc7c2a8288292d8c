"""A model to sample from, behind lm-eval's interface: by `transformers`, vLLM, or the lean sampler."""

from typing import Any

from encore.errors import UserError, nearest
from encore.models import language_model
from encore.models.language_model import load_for_inference
from encore.runtime.progress import Report
from encore.sampling.hf import HuggingFaceSampler
from encore.sampling.lean import LeanSampler

DTYPE = "float32"  # of a recipe that does not say: the same for a model as published and as trained
BACKENDS = ("hf", "lean", "vllm")


def load(source: language_model.Source, config: dict[str, Any], report: Report) -> Any:
    """The lm-eval model of a checkpoint; `report` receives how many completions are done. Raises UserError.

    `config` may have `backend`, `dtype`, `batch_size` (hf and lean) and `backend_args` (vLLM's engine
    arguments).
    """
    backend = config.get("backend", "hf")
    if backend not in BACKENDS:
        raise UserError(f'evals.backend: no backend "{backend}"{nearest(backend, [*BACKENDS])}')
    if backend == "vllm":
        # imported here, because vLLM is an extra that need not be installed
        from encore.sampling.vllm import VLLMSampler

        words = language_model.load_tokenizer(source)
        return VLLMSampler(words, report, **vllm_arguments(source, config))
    sampler = LeanSampler if backend == "lean" else HuggingFaceSampler
    return sampler(
        load_for_inference(source, config.get("dtype", DTYPE)),
        language_model.load_tokenizer(source),
        config.get("batch_size"),
        report,
    )


def vllm_arguments(source: language_model.Source, config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of lm-eval's vLLM model. dtype `auto` would turn float32 into bfloat16, but keep float16."""
    return {
        **config.get("backend_args", {}),
        "pretrained": source.place,
        "revision": source.revision,
        "tokenizer_revision": source.revision,
        "trust_remote_code": False,
        "add_bos_token": False,
        "dtype": config.get("dtype", DTYPE),
        "load_format": "safetensors",
        "seed": config["seed"],
        "batch_size": "auto",
    }
