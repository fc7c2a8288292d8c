"""The padding of a rollout's completions in training, whose lengths are assumed to be exponential."""

from encore.forecast.job import Generation
from encore.forecast.time import scale_of
from encore.recipe.portion import piece_rows


def of_rows(generation: Generation, sorted_rows: int, micro_batch: int) -> float:
    """Return the positions that a model runs over for each real token of prompts and completions.

    `sorted_rows` completions are sorted by length, cut into micro-batches of `micro_batch`, and these into
    pieces. A piece is as wide as its longest completion, whose expected length is counted.
    """
    piece = min(piece_rows(micro_batch), micro_batch)
    theta = scale_of(generation.mean, generation.cap)
    lengths, length = [], 0.0  # expected lengths, the shortest completion first
    for shorter in range(sorted_rows):
        length += theta / (sorted_rows - shorter)  # the mean gap to the next exponential (Rényi 1953)
        lengths.append(min(length, generation.cap))
    ends = range(sorted_rows, 0, -piece)
    positions = sum(min(piece, end) * (generation.prompt + lengths[end - 1]) for end in ends)
    return max(positions / (sorted_rows * (generation.prompt + generation.mean)), 1.0)
