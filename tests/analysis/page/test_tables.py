"""Tables as files."""

import json

import pandas as pd

from analysis.page import tables
from analysis.verdicts import published


def test_all_formats_are_written_and_escaped(tmp_path, run, table):
    frame = published.beside(run, table, {}).assign(what="a_b & <c> | 100%")
    tables.export(tmp_path, tables.Table("published", "A & B", frame), "here")
    assert "a\\_b \\& \\textless{}c\\textgreater{} | 100\\%" in (tmp_path / "published.tex").read_text()
    assert "a_b &amp; &lt;c&gt;" in (tmp_path / "published.html").read_text()
    assert "a_b & <c> \\| 100%" in (tmp_path / "published.md").read_text()
    assert json.dumps(frame.what[0]).strip('"') in (tmp_path / "published.csv").read_text()
    tables.export(tmp_path, tables.Table("none", "None", frame.iloc[:0, :0]), "here")
    assert pd.read_csv(tmp_path / "published.csv", dtype=str, keep_default_na=False).equals(frame)
    assert "nothing to show" in (tmp_path / "none.md").read_text()


def test_a_column_of_numbers_may_have_several_in_a_cell():
    frame = pd.DataFrame({"a": ["79.8 %; 97.3 %", "0.8 [0.7, 0.9]"], "b": ["79.8 %; none", "0.8"]})
    assert tables.cells(frame).numeric == [True, False]
