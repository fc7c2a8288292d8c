"""The key `lora` of a stage: what does not go with adapters; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError where a resolved stage has adapters and what cannot take them into account."""
    if "lora" not in stage:
        return
    if stage.get("sampler") == "lean":
        raise UserError("sampler: lean reads the weights without the adapters of lora; remove one of the two")
    sharded = "shard" in stage.get("resources", {})
    if "quantized" in stage["lora"] and sharded:
        raise UserError(
            "lora.quantized: weights of 4 bits stay whole on each GPU, and resources.shard would spread "
            "them; remove one"
        )
    if sharded and stage["args"].get("use_vllm"):
        raise UserError(
            "lora: TRL cannot send vLLM the sum of adapters and weights that resources.shard spreads; remove "
            "shard, or args.use_vllm"
        )
    if "quantized" in stage["lora"] and stage["args"].get("use_vllm"):
        raise UserError(
            "lora.quantized: weights of 4 bits cannot be sent to vLLM; remove it, or args.use_vllm"
        )
    if stage.get("critic") == "random":
        raise UserError(
            "critic: random has learnt nothing that adapters could add to; take policy or reward_model"
        )
    if stage["args"].get("sync_ref_model"):
        raise UserError("args.sync_ref_model: a reference without adapters cannot follow; remove it, or lora")
