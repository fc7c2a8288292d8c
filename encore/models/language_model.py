"""Language models: built from scratch in Qwen3's shape, or loaded from a stage, a folder or the Hub.

Only safetensors are read, and no code of a checkpoint is ever run.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from encore.errors import UserError
from encore.models import pretrained
from encore.models.lora import product
from encore.models.quantized import as_stored
from encore.models.sharded import Weights
from encore.recipe.machine import Elsewhere, FolderModel, GgufModel, HubModel, WheelModel
from encore.recipe.shape import Shape
from encore.runtime import gpus, hub_errors, sentinel
from encore.runtime.files import saving

FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja"]  # files without pickles and without code


@dataclass(frozen=True)
class Source:
    """The place of a model's weights. `digest` identifies exactly these weights."""

    place: str  # a folder or a Hub name
    revision: str | None
    digest: str


def build(shape: Shape, tokenizer: Any, seed: int) -> Any:
    """Return a randomly initialised Qwen3-shaped model (SwiGLU, RMSNorm, RoPE, normalised queries and keys).

    A `shape` with experts makes a Qwen3-MoE-shaped model: the MLP of each layer is a mixture of experts,
    without a load-balancing loss.
    """
    special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "eos_token_id", "bos_token_id")}
    torch.manual_seed(seed)
    sparse = shape.is_sparse
    made, config = (Qwen3MoeForCausalLM, Qwen3MoeConfig) if sparse else (Qwen3ForCausalLM, Qwen3Config)
    model = made(config(vocab_size=len(tokenizer), **shape.options(), **special))
    model.generation_config = GenerationConfig(**special)
    return model


def locate(model: Elsewhere | Path | None, step: int | None = None) -> Source:
    """Return the place of a model's weights. `model` is a recipe's model, or the metrics.json of a stage.

    `step` is the step after which the stage kept the model; None means the stage's product. Raises UserError
    if there is no model, or if the weights are not the weights that metrics.json records.
    """
    if isinstance(model, Path):
        place, digest = sentinel.product(model, step)
        return Source(str(place), None, digest)
    if isinstance(model, FolderModel):
        folder = Path(model.path)
        if not folder.is_dir():
            raise UserError(f"model.path: no folder {folder}")
        return Source(str(folder), None, sentinel.digest(folder))
    if isinstance(model, HubModel):
        return Source(model.hub, model.revision, f"hub:{model.hub}@{model.revision}")
    if isinstance(model, GgufModel | WheelModel):
        from encore.models import gguf  # imported here, because it takes half a second

        place, digest = gguf.located(model)
        return Source(str(place), None, f"gguf:{digest}")
    raise UserError("model: this stage has neither an input `policy` nor `model: {hub: …}` or another source")


def folder_of(source: Source) -> str:
    """Return a local folder with the files of `source`: its own folder, or a download of its Hub revision.

    The name on the Hub would not do: TRL loads the reference model by the policy's name, and would take the
    newest revision. Raises UserError if the revision is not in the cache and cannot be downloaded.
    """
    if source.revision is None:
        return source.place
    fetch = f"hf download {source.place} --revision {source.revision}"
    try:
        return snapshot_download(source.place, revision=source.revision, allow_patterns=FILES)
    except hub_errors.ERRORS as error:
        wanted = hub_errors.Wanted("model", source.place, source.revision, fetch)
        raise UserError(
            f"model.hub: cannot fetch {source.place}: {hub_errors.explain(error, wanted)}"
        ) from error


def load_tokenizer(source: Source) -> Any:
    """Return the tokenizer saved with a model. It pads on the left, for generation."""
    failing = f"model {source.place}: cannot load its tokenizer"
    tokenizer = pretrained.tokenizer(folder_of(source), failing)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def same_tokenizer(tokenizer: Any, other: Any, names: tuple[str, str]) -> None:
    """Raise UserError unless two tokenizers give each token, and the end of sequence, the same number.

    `names` are the names of their models, for the message.
    """
    first, second = tokenizer.get_vocab(), other.get_vocab()
    odd = sorted(token for token in first.keys() | second.keys() if first.get(token) != second.get(token))
    if not odd and tokenizer.eos_token_id == other.eos_token_id:
        return
    what = f"{odd[0]!r} is token {first.get(odd[0])} and {second.get(odd[0])}" if odd else "their ends differ"
    raise UserError(
        f"{names[0]} and {names[1]} have different tokenizers: {what}; start both from one base model"
    )


def load(source: Source, **options: Any) -> Any:
    """Return the causal language model of `source`, in float32 unless from_pretrained's `options` differ."""
    options = {"dtype": torch.float32, **options}
    failing = f"model {source.place}: cannot load it"
    return as_stored(pretrained.model(AutoModelForCausalLM, folder_of(source), failing, **options))


def configuration(source: Source) -> Any:
    """Return the configuration saved with a model."""
    return pretrained.configuration(folder_of(source), f"model {source.place}: cannot load its configuration")


def load_for_inference(source: Source, dtype: str | None = None) -> Any:
    """Return the causal language model of `source`, on the GPU if there is one.

    `dtype` is torch's name of a type; by default it is float32 on a CPU, and the saved type on a GPU.
    """
    dtype = dtype or ("float32" if device() == "cpu" else "auto")
    return load(source, dtype=dtype).to(device())


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def save(model: Any, tokenizer: Any, folder: Path, generation: Any, dtype: str | None = None) -> None:
    """Write weights, configuration and tokenizer to `folder`, either completely or not at all.

    `generation` is the generation config to save, because trainers change the model's own for their rollouts.
    `dtype` is torch's name for the type of the weights to write; the default is the type of the training. A
    `model` that is not sharded is itself turned into this type. Adapters that `model` still has are added to
    the weights that are written. All processes of a stage must call `save`: together they gather sharded
    weights, and the first process writes.
    """
    model, weights = product(model)
    if not gpus.first():
        return
    if dtype and weights is None:
        model.to(getattr(torch, dtype))
    _write(model, weights, tokenizer, folder, generation, dtype)


def keep(model: Any, tokenizer: Any, folder: Path, generation: Any, dtype: str | None = None) -> None:
    """Save a model in the middle of its training, as `save` does, but leave `model` unchanged.

    All processes must call `keep`.
    """
    model, weights = product(model)
    if not gpus.first():
        return
    config, own_generation = model.config, model.generation_config
    before = config.use_cache, config.dtype
    if dtype and weights is None:
        weights = model.state_dict()
    folder.parent.mkdir(parents=True, exist_ok=True)
    _write(model, weights, tokenizer, folder, generation, dtype)
    model.generation_config = own_generation
    config.use_cache, config.dtype = before


def _write(
    model: Any, weights: Weights | None, tokenizer: Any, folder: Path, generation: Any, dtype: str | None
) -> None:
    """Write `weights`, or the model's own weights if None, with all other files that `save` writes."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    # trainers turn the cache off; without it the time of generation is quadratic
    model.config.use_cache = True
    model.generation_config = generation
    with saving("the model", folder.parent):
        model.save_pretrained(partial, state_dict=_cast(weights, dtype))
        if dtype:  # transformers writes down the type of a sharded model's parts, which keep their type
            model.config.dtype = dtype
            model.config.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def _cast(weights: Weights | None, dtype: str | None) -> Weights | None:
    """Return the weights in the type to save them in; integers stay, and shared memory stays shared."""
    if weights is None or dtype is None:
        return weights
    kind = getattr(torch, dtype)
    places = {name: (w.data_ptr(), w.shape) for name, w in weights.items()}
    made = {places[name]: w.to(kind) if w.is_floating_point() else w for name, w in weights.items()}
    return {name: made[place] for name, place in places.items()}


def disable_dropout(model: Any) -> Any:
    """Return `model` with all dropout rates set to 0; its saved configuration keeps the rates.

    TRL's `disable_dropout` reaches modules of type Dropout, but not the rate that an attention layer keeps as
    a number.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in list(vars(module).items()):
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    return model
