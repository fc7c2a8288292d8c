"""The nodes of a run, and artefacts as they are read."""

import gzip

import pytest
from papers import GRAPH

from analysis.numbers.run import Run, read_json, read_lines, read_rows
from encore.errors import UserError


def test_of_two_stages_of_one_name_an_arm_has_its_own():
    run = Run(GRAPH, "instructgpt", "cpu", ("base-recipe", "rm-shuffled", "large"), (0,))
    stages = {arm: [n for n in run.nodes(arm, 0) if n.kind == "stage"] for arm in run.arms}
    # evaluated with the base arm's reward model, and with one of its own
    assert [n.arm for n in stages["rm-shuffled"] if n.name == "reward_model"] == ["rm-shuffled"]
    # with none of its own, in whose chain is another's sft
    assert {(n.name, n.arm) for n in stages["large"] if n.name in ("reward_model", "sft")} == {
        ("reward_model", "base-recipe"),
        ("sft", "large"),
    }
    for nodes in stages.values():
        labels = [node.name for node in nodes if node.recipe == run.name]
        assert len(labels) == len(set(labels))


@pytest.mark.fault("JSON or JSONL is garbage", "the analysis, by hand", "one line names file and line")
def test_a_broken_artefact_is_one_clear_line(tmp_path):
    path = tmp_path / "after.json"
    path.write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        read_json(path)
    path.write_text("[1]")
    with pytest.raises(UserError, match="expected a JSON object"):
        read_json(path)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b'{"a": 1}\n{"a": "\xff"}\n{"a": ')
    assert [row["a"] for row in read_lines(rows)] == [1, "\ufffd"]
    for wrong in (b"garbage", b"3", b"\x00\xff"):
        rows.write_bytes(b'{"a": 1}\n' + wrong + b'\n{"a": 2}\n')
        with pytest.raises(UserError, match=r"rows\.jsonl: line 2: expected a JSON object"):
            list(read_lines(rows))


@pytest.mark.fault("a curve is garbage or cut short", "the analysis, by hand", "one line names the file")
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\xff\xfe garbage",
        b"step,metric\n1,loss\n",
        b"step,metric,value\n1,loss,0.5\n2,lo",
        b"step,metric,value\n1,loss,0.5\n2,loss,abc\n",
        b"step,metric,value\n1,loss,0.5,7,8\n2,loss\n",
    ],
)
def test_a_curve_that_is_none_is_one_clear_line(tmp_path, text):
    path = tmp_path / "curve.csv"
    path.write_bytes(text)
    with pytest.raises(UserError, match="not as its stage wrote it"):
        read_rows(path, ["step", "value"])
    path.write_text("step,metric,value\n")
    assert len(read_rows(path, ["step", "value"])) == 0


@pytest.mark.parametrize("content", [b"{}", b"\x1f\x8b\x08\x00", b"", b"\x1f\x8b\x08garbage"])
def test_a_broken_gzip_file_is_one_clear_line(tmp_path, content):
    path = tmp_path / "shown.json.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}'))
    assert read_json(path) == {"a": 1}
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"shown\.json\.gz: not "):
        read_json(path)
