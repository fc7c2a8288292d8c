"""Optional packages: checks that a job has the packages it asks for, before anything is loaded."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from encore.errors import UserError
from encore.runtime.suite import install


def require(package: str, lacking: str, command: str, key: str = "the key") -> None:
    """Raise UserError if a package is not installed.

    The message begins with `lacking` and names the `command` that installs the package, and the `key` of the
    recipe that could be left out instead.

    A folder of the package's name does not count as installed; wandb makes one where it is used.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise UserError(f"{lacking} is not installed here; `{command}`, or leave {key} out")


def require_vllm(config: Mapping[str, Any], where: str = "") -> None:
    """Raise UserError if the `config` of a stage or evaluation asks for vLLM, which is not installed.

    `where` is the text before the name of a key, such as "evals.".
    """
    if config.get("backend") == "vllm":
        asked = f"{where}backend: vllm"
    elif config.get("args", {}).get("use_vllm"):
        asked = f"{where}args.use_vllm: true"
    else:
        return
    require("vllm", f"{asked}, but vLLM", install("vllm"))


def require_gym(task: str) -> None:
    """Raise UserError if a task belongs to the library reasoning-gym, which is not installed."""
    require("reasoning_gym", f"task.reasoning_gym: {task}, but reasoning-gym", install("gym"), "the task")


def require_environment(library: str) -> None:
    """Raise UserError if the library of an environment, openenv or verifiers, is not installed."""
    lacking = f"task.environment: {library}, but the package"
    require(library, lacking, install(library), "the task")


def require_liger(config: Mapping[str, Any]) -> None:
    """Raise UserError if a stage's `args` ask for Liger's kernels, which are not installed."""
    if config.get("args", {}).get("use_liger_kernel"):
        require("liger_kernel", "args.use_liger_kernel: true, but Liger", install("liger"))


def require_bitsandbytes(config: Mapping[str, Any]) -> None:
    """Raise UserError if a stage's `lora` needs weights of 4 bits, but no package can pack them."""
    kind = config.get("lora", {}).get("quantized")
    if kind:
        require("bitsandbytes", f"lora.quantized: {kind}, but bitsandbytes", install("qlora"))
