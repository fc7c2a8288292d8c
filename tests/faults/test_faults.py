"""The published tables of faults are what the tests say, and the kills end with the bits of no kill."""

import random
from collections import Counter

import kill_points
import kills
import pytest
import table
from fault_cases import CASES

AGAIN = "write it again: snakemake --cores faults"


def test_the_published_table_is_what_the_tests_say():
    assert table.TABLE.read_text(encoding="utf-8") == table.text(), AGAIN


def test_each_fault_is_told_where_and_how_it_ends():
    rows = table.rows()
    assert len({row[:2] for row in rows}) == len(rows), "two tests of one fault at one place"
    assert all(len(text) > 3 for row in rows for text in row)


def test_the_published_kills_left_no_other_bits():
    counts = kills.read(kills.TABLE)
    assert {kind for kind, _, _ in counts} == set(CASES)
    assert not [place for place in counts if place[-1]]
    assert kills.text(counts) == kills.TABLE.read_text()


def test_a_table_that_was_stopped_goes_on(tmp_path):
    counts = Counter(
        {("grpo", "computing", False): 3, ("grpo", "computing", True): 1, ("sft", "x", False): 2}
    )
    (tmp_path / "kills.csv").write_text(kills.text(counts))
    assert kills.read(tmp_path / "kills.csv") == counts
    assert kills.read(tmp_path / "none.csv") == Counter()


@pytest.mark.parametrize(
    ("operation", "phase"),
    [
        ("os.rename checkpoints/grpo/saving/checkpoint-3", "saving a checkpoint"),
        ("open checkpoints/grpo/.final.partial/model.safetensors", "saving or reading a product"),
        ("open results/grpo/.metrics.json.partial", "writing or reading metrics"),
        ("os.remove checkpoints/grpo/checkpoint-3/resume.pt", "removing the training state"),
        ("open elsewhere", "other files"),
    ],
)
def test_phase_of_an_operation(operation, phase):
    assert kill_points.phase(operation) == phase


@pytest.mark.fault("kill -9", "a stage of every kind, an evaluation: at any file operation or moment",
                   "goes on by the same command; same bits (kills.csv)")  # fmt: skip
@pytest.mark.slow
@pytest.mark.parametrize("name", ["policy_gradient", "sample"])
def test_a_chain_of_kills_ends_with_the_same_bits(name, tmp_path):
    """Two of the kinds; `snakemake --cores faults` has them all, again and again."""
    subject = kills.Subject(CASES[name], tmp_path)
    for seed in range(3):
        phases, others = subject.chain(random.Random(seed), 2)
        assert not others, phases
