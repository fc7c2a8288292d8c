"""A mistake on the command line."""

import pytest

from analysis import command_line, report
from encore.recipe import load


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--recipe", "toy_zer", "--scale", "cpu"], 'unknown recipe "toy_zer"; did you mean "toy_zero"?'),
        (["--recipe", "toy_zero", "--scale", "cpus"], 'unknown scale "cpus"; did you mean "cpu"?'),
        (["--recipe", "toy_zero", "--scale", "cpu", "--seeds", "0"], "--seeds: expected a number of seeds"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(argv, message, run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(load, "load_sound", lambda folder, own: (run.graph.recipes, {}))
    assert command_line.main("", lambda *args: None, [*argv, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_analysis_without_results_leaves_the_tables_as_they_are(run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(load, "load_sound", lambda folder, own: (run.graph.recipes, {}))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("good")
    argv = ["--recipe", run.name, "--scale", run.scale, "--out", str(tmp_path.with_suffix(".html"))]
    assert command_line.main("", report.command, argv) == 2
    assert (tmp_path / "table.csv").read_text() == "good"
    error = capsys.readouterr().err
    assert error.startswith(f"error: no results of recipe {run.name} at scale cpu in ")
    assert error.count("\n") == 1


def test_a_page_that_is_no_page_is_one_line(run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(load, "load_sound", lambda folder, own: (run.graph.recipes, {}))
    argv = ["--recipe", run.name, "--scale", run.scale, "--out", str(tmp_path)]
    assert command_line.main("", report.command, argv) == 2
    assert capsys.readouterr().err == f"error: --out: expected a file that ends in .html, got {tmp_path}\n"
