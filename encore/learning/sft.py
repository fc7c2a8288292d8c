"""TRL's SFTTrainer with exact resume, in batches of documents of similar length."""

from trl import SFTTrainer

from encore.learning.counted import Counted


class SFT(Counted, SFTTrainer):
    """An SFTTrainer that can resume at any step."""
