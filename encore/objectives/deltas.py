"""Which deltas of `policy_gradient` compare responses. Imports no torch: the recipe checks read it too."""

from encore.errors import UserError

COMPARING = ("centered", "normalized")  # the mean of the responses to a prompt is taken from each


def check_group(delta: str, responses: int) -> None:
    """Raise UserError unless `delta` has as many `responses` to a prompt as it compares."""
    if responses < 2 and delta in COMPARING:
        raise UserError(f"args.num_generations: delta {delta} compares at least 2 responses, got {responses}")
