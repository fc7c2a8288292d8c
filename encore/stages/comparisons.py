"""The comparisons that a reward model learns from, and the demonstrations that centre its rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from encore.data import demonstrations, preferences, token_ids
from encore.data.token_ids import Row, Sequences
from encore.errors import UserError
from encore.recipe.kinds import RewardModelStage
from encore.runtime import health
from encore.stages.job import Job
from encore.stages.trainer_config import check_evaluation

MEASURED = 1024  # prompts of the training data, evenly spread, whose comparisons are measured at the end


@dataclass(frozen=True)
class Split:
    """Comparisons of responses: a row for each prompt, and the token ids of the prompt's responses."""

    rows: Sequence[Row]
    sequences: list[Sequences]

    @property
    def flat(self) -> Sequences:
        """The token ids of all responses, one after another."""
        return [ids for of_row in self.sequences for ids in of_row]


@dataclass(frozen=True)
class Data:
    """The data that the members of an ensemble of reward models learn from and are measured on."""

    splits: Mapping[str, Split]
    sample: Split  # comparisons of evenly spread training prompts, for measuring after the training
    demonstrations: Sequences  # token ids of demonstrations, whose mean reward a bias sets to 0
    skipped: Mapping[str, int]  # reason -> number of prompts or demonstrations skipped for it

    @property
    def scored(self) -> dict[str, Sequences]:
        """The sequences that each member scores after its training."""
        return {
            "train": self.sample.flat,
            "validation": self.splits["validation"].flat,
            "demonstrations": self.demonstrations,
        }

    @property
    def longest(self) -> int:
        """The number of tokens of the longest sequence."""
        return max(map(len, [*self.splits["train"].flat, *self.scored["validation"], *self.demonstrations]))


def read_comparisons(
    stage: RewardModelStage, job: Job, tokenizer: Any, args: Any
) -> tuple[Data, list[health.Check]]:
    """Return the data to learn from and the checks of the data. Raises UserError at the first error."""
    rows, counts = preferences.usable(preferences.load(job.inputs["data"]))
    checks, skipped = health.stop_at_errors(preferences.checks(rows, counts)), dict(counts)
    limit, splits = args.max_length, {}
    for name in preferences.SPLITS:
        some = preferences.of_split(rows, name)
        splits[name] = Split(*token_ids.fitting(some, token_ids.tokenised(some, tokenizer), limit))
        skipped["long"] = skipped.get("long", 0) + len(some) - len(splits[name].rows)
    checks.append(health.left_out(skipped["long"], len(rows), limit))
    kept = len(preferences.first(splits["train"].rows, stage.problems))
    splits["train"] = Split(splits["train"].rows[:kept], splits["train"].sequences[:kept])
    shown: list[demonstrations.Demonstration] = []
    if "demonstrations" in job.inputs:
        shown = demonstrations.load(job.inputs["demonstrations"])
    elif stage.demonstrations:
        shown = demonstrations.of_task(stage.demonstrations, job.seed, tokenizer)
    shown, unusable = demonstrations.usable(shown)
    skipped |= {f"demonstrations/{reason}": count for reason, count in unusable.items()}
    checks += _check_data(splits, shown, args, tokenizer)
    every = max(1, len(splits["train"].rows) // MEASURED)
    sample = Split(splits["train"].rows[::every], splits["train"].sequences[::every])
    return Data(splits, sample, demonstration_ids(shown, tokenizer, limit), skipped), checks


def _check_data(
    splits: Mapping[str, Split], shown: Sequence[Row], args: Any, tokenizer: Any
) -> list[health.Check]:
    """Return the checks of comparisons and demonstrations. Raises UserError at the first error."""
    check_evaluation(args, len(splits["validation"].rows), "held-out comparisons")
    texts = {row[name] for row in shown for name in ("prompt", "completion")}
    for split in splits.values():
        texts |= {text for row in split.rows for text in (row["prompt"], *row["responses"])}
    return health.stop_at_errors([health.known_tokens(tokenizer, sorted(texts), "comparison")])


def demonstration_ids(rows: Sequence[Row], tokenizer: Any, max_length: int | None) -> Sequences:
    """Return the token ids of each demonstration that is short enough: prompt, completion, end of sequence.

    Raises UserError if there are demonstrations but none is short enough.
    """
    like = [{"prompt": row["prompt"], "responses": [row["completion"]], "truncated": [False]} for row in rows]
    _, sequences = token_ids.fitting(like, token_ids.tokenised(like, tokenizer), max_length)
    if rows and not sequences:
        raise UserError(
            f"args.max_length: all {len(rows)} demonstrations are longer than {max_length} tokens"
        )
    return Split([], sequences).flat
