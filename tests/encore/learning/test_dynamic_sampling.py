"""Dynamic sampling: only groups of mixed outcome, a bounded search for them, the same after a resume."""

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.learning.measures import Measures
from encore.learning.minibatch import Minibatch, joined, rows
from encore.learning.mixed_groups import MixedGroups
from encore.learning.prompt_order import EpochOrder, prompts_of
from encore.learning.rollouts import Options

PAD = 0
SIZE = 4  # completions a group


class Log:
    """Stands for the record of completions."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(self, rows: list[dict[str, Any]], group_size: int) -> None:
        self.rows += rows


class Scripted(MixedGroups):
    """Dynamic sampling over rounds whose outcomes a script gives: right completions of each group."""

    def __init__(self, script: list[list[int]], max_rounds: int, folder: Path):
        trainer = SimpleNamespace(
            accelerator=SimpleNamespace(
                num_processes=1, process_index=0, is_main_process=True, gather=lambda tensor: tensor
            ),
            args=SimpleNamespace(seed=0, output_dir=str(folder)),
            state=SimpleNamespace(global_step=6),
            num_generations=SIZE,
            train_dataset=[{"prompt": str(i)} for i in range(40)],
            shuffle_dataset=True,
            processing_class=SimpleNamespace(pad_token_id=PAD),
            _metrics={"train": defaultdict(list)},
        )
        self.log: Any = Log()
        measures = Measures(trainer, SimpleNamespace(), grouped=True)
        nothing: Any = None
        super().__init__(
            *(trainer, nothing, nothing, nothing, nothing, measures, Options(log=self.log)),
            max_rounds=max_rounds,
        )
        self.script = iter(script)
        self.prompts_seen: list[str] = []

    def round(self, rows: list[dict[str, Any]]) -> tuple[Minibatch, list[dict[str, Any]]]:
        """Row i of the run has i + 1 tokens i + 1 in a prompt of 1 + i % 3."""
        counts = next(self.script)
        assert len(rows) == len(counts) * SIZE
        first = len(self.prompts_seen)
        self.prompts_seen += [row["prompt"] for row in rows]
        right = [place < count for count in counts for place in range(SIZE)]
        records = [
            {"prompt": row["prompt"], "tokens": number, "rewards": {"accuracy": float(is_right)}}
            for number, (row, is_right) in enumerate(zip(rows, right, strict=True), first + 1)
        ]
        numbers = [first + i for i in range(len(rows))]
        completions = [[number + 1] * (number + 1) for number in numbers]
        prompts = [[number + 1] * (1 + number % 3) for number in numbers]
        return rollout(prompts, completions), records


def rollout(prompts: list[list[int]], completions: list[list[int]]) -> Minibatch:
    """Return a round; the advantages are (batch, time), and tokens stand for numbers."""
    left, right = max(map(len, prompts)), max(map(len, completions))
    ids = torch.tensor([c + [PAD] * (right - len(c)) for c in completions])
    before = torch.tensor([[PAD] * (left - len(p)) + p for p in prompts])
    return Minibatch(
        before,
        (before != PAD).long(),
        ids,
        (ids != PAD).long(),
        advantages=ids.float(),
        old=-ids.float(),
    )


@pytest.fixture
def scripted(tmp_path: Path):
    def build(script: list[list[int]], max_rounds: int = 5) -> Scripted:
        return Scripted(script, max_rounds, tmp_path)

    return build


def sample(rollouts: Scripted, groups: int) -> tuple[Minibatch, list[int]]:
    """A rollout, and which rows of all sampled it holds."""
    found = rollouts.collect([{"prompt": "the dataloader's"}] * groups * SIZE)
    numbers = (found.completion_ids.max(dim=1).values - 1).tolist()
    return found, numbers


def rows_of(*groups: int) -> list[int]:
    return [group * SIZE + place for group in groups for place in range(SIZE)]


def test_rounds_go_on_until_the_rollout_is_full_and_the_surplus_is_thrown_away(scripted):
    trainer = scripted([[0, 2, 4], [0, 4, 1], [3, 1, 2]])
    _, numbers = sample(trainer, 3)
    assert numbers == rows_of(1, 5, 6)  # of the third round's three mixed groups one was still needed
    metrics = trainer.measures.log
    assert {name: metrics[f"dynamic/{name}"] for name in ("rounds", "kept", "underfull")} == {
        "rounds": [3.0],
        "kept": [3 / 9],
        "underfull": [0.0],
    }
    assert [row["prompt"] for row in trainer.log.rows] == trainer.prompts_seen
    assert [i for i, row in enumerate(trainer.log.rows) if row["kept"]] == numbers
    assert "the dataloader's" not in trainer.prompts_seen


def test_the_rectangle_is_as_wide_as_its_longest_row(scripted):
    found, numbers = sample(scripted([[1, 0, 4], [1, 4, 1], [0, 0, 4]]), 3)
    assert numbers == rows_of(0, 3, 5)
    longest = max(numbers) + 1
    assert found.completion_ids.shape == (12, longest)
    assert found.prompt_ids.shape == (12, 3)
    for row, number in enumerate(numbers):
        tokens = [number + 1] * (number + 1)
        padding = [PAD] * (longest - len(tokens))
        assert found.completion_ids[row].tolist() == tokens + padding
        assert found.completion_mask[row].tolist() == [1] * len(tokens) + padding
        assert found.old[row].tolist() == [-token for token in tokens] + padding
        assert found.advantages[row].tolist() == tokens + padding
        prompt = [number + 1] * (1 + number % 3)
        assert found.prompt_ids[row].tolist() == [PAD] * (3 - len(prompt)) + prompt


def test_too_few_mixed_groups_are_filled_up_without_advantage(scripted):
    trainer = scripted([[0, 2, 4], [0, 4, 4]], max_rounds=2)
    found, numbers = sample(trainer, 3)
    assert numbers == rows_of(1, 3, 4)
    assert found.advantages[:SIZE].any(dim=1).all()
    assert not found.advantages[SIZE:].any()
    assert trainer.measures.log["dynamic/underfull"] == [1.0]
    assert trainer.measures.log["dynamic/kept"] == [1 / 6]
    assert [row["kept"] for row in trainer.log.rows] == [i // SIZE == 1 for i in range(24)]


def test_trained_tokens_are_those_of_the_rollouts(scripted):
    """Groups that are left out do not count; a truncated completion and a group that fills up do."""
    trainer = scripted([[0, 2, 4], [0, 4, 4], [1, 1, 1]], max_rounds=2)
    expected = 0
    for _ in range(2):
        found, numbers = sample(trainer, 3)
        expected += int(found.prompt_mask.sum()) + sum(number + 1 for number in numbers)
        assert trainer.measures.log["dynamic/trained_tokens"] == [expected]
    resumed = scripted([[1, 1, 1]])
    resumed.trained_tokens = expected
    found, numbers = sample(resumed, 3)
    more = int(found.prompt_mask.sum()) + sum(number + 1 for number in numbers)
    assert resumed.measures.log["dynamic/trained_tokens"] == [expected + more]


def test_a_truncated_completion_out_of_the_loss_keeps_its_tokens():
    one = rollout([[1], [2]], [[1, 1], [2, 2, 2]])
    one.completion_mask[1] = 0
    both = joined([rows(one, [1]), rows(one, [0])], PAD)
    assert both.completion_ids.tolist() == [[2, 2, 2], [1, 1, 0]]
    assert both.completion_mask.tolist() == [[0, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ([[4, 4], [4, 4]], "100% of the groups are all right, 0% all wrong; take harder problems"),
        ([[0, 0], [0, 0]], "0% of the groups are all right, 100% all wrong; take easier problems"),
        ([[4, 4], [4, 0]], "75% of the groups are all right, 25% all wrong"),
    ],
)
def test_a_first_rollout_without_mixed_groups_ends_the_stage_with_what_to_do(scripted, script, says):
    with pytest.raises(UserError, match=says) as raised:
        sample(scripted(script, max_rounds=2), 2)
    line = str(raised.value)
    assert line.startswith(
        "step 7: dynamic sampling found no group of mixed outcome in 2 rounds of 2 prompts"
    )
    assert "num_generations" in line
    assert "dynamic_sampling.max_rounds" in line
    assert "\n" not in line


def test_a_later_rollout_without_mixed_groups_has_no_advantage(scripted):
    """A policy that has solved its problems, or forgotten them, is trained to the end."""
    trainer = scripted([[1, 2], [4, 4], [0, 4]], max_rounds=2)
    sample(trainer, 2)
    rollout_without, numbers = sample(trainer, 2)
    assert numbers == rows_of(4, 5)  # the last round's
    assert not rollout_without.advantages.any()
    assert trainer.measures.log["dynamic/underfull"] == [0.0, 1.0]
    assert trainer.measures.log["dynamic/kept"] == [1.0, 0.0]


def test_groups_that_are_not_whole_are_refused(scripted):
    with pytest.raises(UserError, match="no whole groups of 4"):
        scripted([[1]]).collect([{"prompt": "p"}] * 6)


def test_the_cursor_is_one_number(scripted):
    whole = scripted([[1, 1]] * 30)
    for _ in range(30):
        sample(whole, 2)
    resumed = scripted([[1, 1]] * 18)
    resumed.rounds_drawn = 12
    for _ in range(18):
        sample(resumed, 2)
    assert resumed.prompts_seen == whole.prompts_seen[12 * 2 * SIZE :]
    epochs = [whole.prompts_seen[i : i + 40 * SIZE : SIZE] for i in (0, 40 * SIZE)]
    assert sorted(epochs[0], key=int) == [str(i) for i in range(40)]
    assert epochs[1] != epochs[0][: len(epochs[1])]


def test_prompts_come_in_the_order_of_a_run_without_dynamic_sampling():
    sampler = EpochOrder(list(range(11)), mini_repeat_count=2, batch_size=4, repeat_count=3, seed=5)
    number = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        indices = list(sampler)
        for start in range(0, len(indices), 2 * 4 * 3):
            assert prompts_of(number, 4, 11, 5) == indices[start : start + 8 : 2]
            number += 1
    assert number == 3 * 2


LENGTHS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 6)), min_size=2, max_size=2)


@settings(max_examples=50)
@given(st.lists(LENGTHS, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_joined_rounds_hold_the_rows_they_had(rounds, rng):
    """`rounds`: prompt and completion length of each row; groups of one."""
    parts, expected, token = [], [], 1
    for lengths in rounds:
        prompts = [[token + i] * p for i, (p, _) in enumerate(lengths)]
        completions = [[token + i] * c for i, (_, c) in enumerate(lengths)]
        token += len(lengths)
        chosen = rng.sample(range(2), rng.randint(1, 2))
        parts.append(rows(rollout(prompts, completions), chosen))
        expected += [(prompts[i], completions[i]) for i in chosen]
    whole = joined(parts, PAD)
    assert whole.prompt_ids.shape[1] == max(len(p) for p, _ in expected)
    assert whole.completion_ids.shape[1] == max(len(c) for _, c in expected)
    for row, (prompt, completion) in enumerate(expected):
        for side, tokens in (("prompt", prompt), ("completion", completion)):
            ids, mask = vars(whole)[f"{side}_ids"][row], vars(whole)[f"{side}_mask"][row].bool()
            assert ids[mask].tolist() == tokens
            assert (ids[~mask] == PAD).all()
            edge = mask[-1] if side == "prompt" else mask[0]
            assert edge
