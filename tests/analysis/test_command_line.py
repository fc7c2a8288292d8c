"""A mistake on the command line."""

import pytest

from analysis import command_line


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--recipe", "toy_zer", "--scale", "cpu"], 'unknown recipe "toy_zer"; did you mean "toy_zero"?'),
        (["--recipe", "toy_zero", "--scale", "cpus"], 'unknown scale "cpus"; did you mean "cpu"?'),
        (["--recipe", "toy_zero", "--scale", "cpu", "--seeds", "0"], "--seeds: expected a whole number"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(argv, message, run, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command_line, "load_all", lambda folder: run.graph.recipes)
    assert command_line.main("", lambda *args: None, [*argv, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
