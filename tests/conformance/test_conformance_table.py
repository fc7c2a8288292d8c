"""results/published/conformance.csv is what is measured now, and each row of it is explained."""

import csv
import io
import re
from pathlib import Path

import pins
import pytest
from conformance import COMMAND, TABLE, declared, table

NUMBER = re.compile(r"[0-9.]+(?:e-[0-9]+)?")
AGAIN = f"write the table again: {COMMAND}"


def committed() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(TABLE.read_text())))


def test_rows():
    """Those that the code declares; the sizes are measured in the slow test."""
    found = [(row["objective"], row["property"], row["status"], row["note"]) for row in committed()]
    for row in declared():
        assert row in found, f"{row[0]}, {row[1]}: missing or otherwise in {TABLE.name}; {AGAIN}"
    assert len(found) == len(declared()), AGAIN


def test_no_row_is_unexplained():
    for row in committed():
        assert row["status"] in ("exact", "corrected", "deviates"), row
        assert row["size"], row
        assert len(row["note"]) > 10, row


@pytest.mark.slow
def test_sizes(tmp_path: Path):
    for now, then in zip(csv.DictReader(io.StringIO(table(tmp_path))), committed(), strict=True):
        sizes = [[float(number) for number in NUMBER.findall(row["size"])] for row in (now, then)]
        what = (
            f"{now['objective']}, {now['property']}: {then['size']} in {TABLE.name}, measured {now['size']}"
        )
        assert sizes[0] == pytest.approx(sizes[1], rel=0.05), (
            f"{what}: {pins.because('sizes of conformance')}; {AGAIN}"
        )
