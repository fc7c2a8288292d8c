"""The machines of a job, the engine that samples, and models from elsewhere."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from encore.errors import UserError
from encore.recipe.base import HubName, Model, Positive, Revision
from encore.recipe.mistakes import lines

Dtype = Literal["float32", "bfloat16", "float16"]
Backend = Literal["hf", "lean", "vllm"]  # lean: encore/sampling/lean.py, for small models
MOST = 16  # GPUs: no machine has more, and a scheduler would have a job that asks for them wait for ever


class Resources(Model):
    """The machine that a job is run on."""

    gpu: Annotated[int, Field(ge=0)] = 0
    mem_mb: Positive | None = None  # of a node
    # minutes of the whole; a job asks for two days at most, the next one goes on
    runtime: Positive | None = None
    # machines of one Slurm job that `gpu` lie on, as many on each; of several, a vLLM server has the last for
    # itself
    nodes: Positive = 1
    # of a stage on several GPUs: weights, gradients and optimizer are spread over them, by FSDP2
    shard: Literal["fsdp"] | None = None


class BackendArgs(Model):
    """vLLM's engine arguments that say how it uses its GPUs.

    Others would load code, upload or write elsewhere.
    """

    tensor_parallel_size: Positive | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    max_model_len: Positive | None = None
    max_num_seqs: Positive | None = None
    max_num_batched_tokens: Positive | None = None
    enforce_eager: bool | None = None
    enable_prefix_caching: bool | None = None


class Engine(Model):
    """The engine that samples completions from a model."""

    backend: Backend = "hf"
    backend_args: BackendArgs | None = None  # of vLLM
    # what every checkpoint is computed in, whatever it was trained or saved in
    dtype: Dtype = "float32"
    # completions at once, of backends hf and lean; default: 512 on a CPU, as many as fit into memory on a GPU
    batch_size: Positive | None = None


class HubModel(Model):
    """A model of the Hub, at a commit."""

    hub: HubName
    revision: Revision


class FolderModel(Model):
    """A model in a folder."""

    path: str


def _source(value: Any) -> str:
    folder = isinstance(value, FolderModel) or (isinstance(value, Mapping) and "path" in value)
    return "a folder" if folder else "a Hub model"


Source = Annotated[
    Annotated[HubModel, Tag("a Hub model")] | Annotated[FolderModel, Tag("a folder")], Discriminator(_source)
]


def elsewhere(model: Mapping[str, Any]) -> HubModel | FolderModel:
    """Return the model of the Hub or of a folder that a mapping names. Raises UserError for any other."""
    try:
        return (FolderModel if "path" in model else HubModel).model_validate(model)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, model, ["model"]))) from None


def check_one(gpus: int, serving: int = 0) -> None:
    """Raise UserError where no machine has `gpus` for a job, and `serving` more for its vLLM server."""
    if gpus + serving <= MOST:
        return
    beside = f" and vllm_gpus: {serving}" if serving else ""
    raise UserError(
        f"resources.gpu: {gpus}{beside} on one machine, and none has more than {MOST}; stages that train "
        "take resources.nodes, of which a vLLM server has the last, and nothing else reaches beyond one"
    )
