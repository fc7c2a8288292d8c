"""Extras such as vLLM: whether a job that asks for one finds it, told before anything is loaded."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from recipes.errors import UserError

INSTALL = "pip install -e '.[vllm]'"
INSTALL_QLORA = "pip install -e '.[qlora]'"


def require_vllm(config: Mapping[str, Any], where: str = "") -> None:
    """Raise UserError where `config`, of a stage or an evaluation, asks for vLLM and it is not installed.

    `where`: what stands before the name of a key, such as "evals.".
    """
    if config.get("backend") == "vllm":
        asked = f"{where}backend: vllm"
    elif config.get("args", {}).get("use_vllm"):
        asked = f"{where}args.use_vllm: true"
    else:
        return
    if find_spec("vllm") is None:
        raise UserError(f"{asked}, but vLLM is not installed here; `{INSTALL}`, or leave the key out")


def require_bitsandbytes(config: Mapping[str, Any]) -> None:
    """Raise UserError where a stage's `lora` asks for weights of 4 bits, and nothing here can pack them."""
    kind = config.get("lora", {}).get("quantized")
    if kind and find_spec("bitsandbytes") is None:
        raise UserError(
            f"lora.quantized: {kind}, but bitsandbytes is not installed here; `{INSTALL_QLORA}`, or leave "
            "the key out"
        )
