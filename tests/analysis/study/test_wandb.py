"""W&B's offline runs are read as they were logged; damaged ones are told in one line."""

import math
import struct
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.study import document, formats, numbers, wandb
from encore.errors import UserError

RUNS = Path(__file__).parent / "wandb"  # of the runs a-1 and b-1, as wandb 0.31.0 keeps them offline
LOG = RUNS / "run-a.wandb"


@pytest.fixture(autouse=True)
def _definitions():
    pytest.importorskip("wandb.proto.wandb_internal_pb2")


def series(rows, metric):
    return rows[rows.metric == metric].set_index("step").value.to_dict()


def framed(records):
    """Records in the frame of LevelDB's log, cut into fragments where a block ends."""
    content = bytearray(b":W&B\xe1\xbe\x00")
    for record in records:
        left, first = record, True
        while first or left:
            room = wandb.BLOCK - len(content) % wandb.BLOCK
            if room < 7:
                content += bytes(room)
                continue
            part, left = left[: room - 7], left[room - 7 :]
            kinds = (wandb.FIRST, wandb.MIDDLE) if left else (wandb.WHOLE, wandb.LAST)
            kind = kinds[not first]
            content += struct.pack("<IHB", 0, len(part), kind) + part
            first = False
    return bytes(content)


def test_a_run_has_the_curves_that_were_logged():
    rows = formats.read_log(LOG, None)
    assert series(rows, "a-1 - train/reward") == {1: 0.1, 2: 0.25, 3: 0.5}
    assert series(rows, "a-1 - nested/x") == {1: 1.0, 2: 1.0, 3: 2.0}
    assert math.isnan(series(rows, "a-1 - loss")[3])
    assert not [name for name in rows.metric if "note" in name]
    assert series(formats.read_log(LOG, "train/global_step"), "a-1 - train/reward") == {
        10: 0.1,
        20: 0.25,
        30: 0.5,
    }


def test_each_file_is_a_run_by_its_name(tmp_path):
    for run in RUNS.iterdir():
        (tmp_path / f"offline-{run.stem}").mkdir()
        (tmp_path / f"offline-{run.stem}" / run.name).write_bytes(run.read_bytes())
    test = {"metric": "last/train/reward", "of": "a/train", "against": "b/train", "direction": "higher"}
    study = {
        "title": "Sums",
        "runs": {"train": {"files": ["offline-*/run-*.wandb"], "columns": "{arm}-{seed} - {metric}"}},
        "claims": {"higher": {"says": "a is higher.", "test": test | {"margin": 0.1}}},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    collected = numbers.collect(document.load(tmp_path / "study.yaml"), tmp_path)
    assert collected.table.set_index(["arm", "seed"]).value.to_dict() == {("a", 1): 0.5, ("b", 1): 0.4}


def test_a_record_longer_than_a_block_is_put_together():
    records = [*wandb.records(LOG.read_bytes())]
    assert [*wandb.records(framed(records))] == records
    for size in (wandb.BLOCK - 30, wandb.BLOCK - 7, wandb.BLOCK, 3 * wandb.BLOCK):
        assert [*wandb.records(framed([b"a" * size, b"b", b""]))] == [b"a" * size, b"b", b""]


def test_of_a_run_that_goes_on_the_whole_records_are_read(tmp_path):
    path = tmp_path / "run.wandb"
    content = LOG.read_bytes()
    lengths = []
    for end in range(len(content) // 3, len(content), 7):
        path.write_bytes(content[:end])
        lengths.append(len(wandb.run(path).entries))
    assert {*lengths} == {0, 1, 2, 3}
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b":W&B\xe1\xbe\x00" + struct.pack("<IHB", 0, 3, 9) + b"abc", "damaged: no record of W&B at byte 7"),
        (b":W&B\xe1\xbe\x00" + struct.pack("<IHB", 0, 3, 3) + b"abc", "damaged: no record of W&B at byte 7"),
        (b":W&B\xe1\xbe\x00" + struct.pack("<IHB", 0, 3, 1) + b"\xff\xff\xff", "damaged: "),
        (b":W&B", "it names no run"),
    ],
)
def test_what_is_damaged_is_told_in_one_line(content, said, tmp_path):
    path = tmp_path / "run.wandb"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        formats.read_log(path, None)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


@given(at=st.integers(4, LOG.stat().st_size - 1), byte=st.binary(min_size=1, max_size=8))
def test_damage_raises_nothing_else(tmp_path_factory, at, byte):
    path = tmp_path_factory.mktemp("wandb") / "run.wandb"
    content = LOG.read_bytes()
    path.write_bytes(content[:at] + byte + content[at + len(byte) :])
    with suppress(UserError):
        formats.read_log(path, None)


def test_without_the_package_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb.proto.wandb_internal_pb2", None)
    with pytest.raises(UserError, match="pip install wandb, or export the run as CSV"):
        formats.read_log(LOG, None)
