"""The loader of saved models, tokenizers and configurations from a folder. No other module loads them.

Only safetensors are read. Python code in the folder is never run, and transformers does not ask for
permission to run it.
"""

from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer

from encore.errors import UserError
from encore.models.liger import fused
from encore.runtime import hub_errors

ASKS = "trust_remote_code"  # part of transformers' message about a folder whose code it would have to run


def model(kind: Any, folder: str | Path, failing: str, liger: bool = False, **options: Any) -> Any:
    """Return the model in `folder`, of `kind`, a class such as transformers' AutoModelForCausalLM.

    `liger`: whether it computes by Liger's kernels. `options` are the options of `from_pretrained`. Raises
    UserError, with a message that begins with `failing`, if there is no such model or if loading it would run
    the folder's own code.
    """
    loaded = _load(kind, folder, failing, **options, use_safetensors=True)
    return fused(loaded) if liger else loaded


def tokenizer(folder: str | Path, failing: str) -> Any:
    """Return the tokenizer in `folder`. Raises UserError as `model` does."""
    return _load(AutoTokenizer, folder, failing)


def configuration(place: str | Path, failing: str) -> Any:
    """Return a model's configuration; `place` is its folder or config.json. Raises as `model` does."""
    return _load(AutoConfig, place, failing, local_files_only=True)


def _load(kind: Any, place: str | Path, failing: str, **options: Any) -> Any:
    try:
        return kind.from_pretrained(place, **options, trust_remote_code=False)
    except hub_errors.ERRORS as error:
        why = hub_errors.explain(error, hub_errors.Wanted("model", str(place)))
        if ASKS in str(error):
            why = "it brings its own Python code (auto_map), which is never run; use a model without code"
        raise UserError(f"{failing}: {why}") from error
