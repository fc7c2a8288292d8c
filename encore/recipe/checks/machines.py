"""How many GPUs a job asks of one machine; checked before any job is submitted."""

from encore.errors import UserError

MOST = 16  # no machine has more: a scheduler would have a job that asks for them wait for ever


def check_one(gpus: int, serving: int = 0) -> None:
    """Raise UserError where no machine has `gpus` for a job, and `serving` more for its vLLM server."""
    if gpus + serving <= MOST:
        return
    beside = f" and vllm_gpus: {serving}" if serving else ""
    raise UserError(
        f"resources.gpu: {gpus}{beside} on one machine, and none has more than {MOST}; stages that train "
        "take resources.nodes, of which a vLLM server has the last, and nothing else reaches beyond one"
    )
