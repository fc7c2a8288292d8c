"""Which keys of a stage that samples by vLLM go together; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError where a resolved stage and its vLLM, colocated or a server, do not fit."""
    args = stage.get("args", {})
    server = bool(args.get("use_vllm")) and args.get("vllm_mode", "colocate") == "server"
    if not server:
        if "vllm_gpus" in stage:
            raise UserError(
                "vllm_gpus: without effect; a server is started by args.use_vllm: true and vllm_mode: server"
            )
        return
    if args.get("vllm_enable_sleep_mode"):
        raise UserError(
            "args.vllm_enable_sleep_mode: a server has GPUs of its own and never sleeps; remove it"
        )
    training = stage.get("resources", {}).get("gpu", 0)
    if not training:
        raise UserError("args.vllm_mode: server sends weights from GPU to GPU, and resources.gpu is 0")
    if "vllm_gpus" not in stage:
        raise UserError(
            f"vllm_gpus: missing; how many GPUs the server gets, beside the {training} of resources.gpu"
        )
