"""The doctor's finding on the sandbox, which many containers do not let start."""

from encore.commands import doctor


def of_sandbox() -> list[str]:
    return [str(line) for line in doctor.findings() if line.what.startswith("sandbox")]


def test_the_doctor_says_why_no_program_can_run_and_who_needs_it(tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = of_sandbox()
    assert line.startswith("-    sandbox: ")
    assert "bwrap: No permissions to create new namespace" in line
    assert line.endswith("rewards and verifiers that run programs need it")


def test_the_doctor_starts_a_sandbox(monkeypatch, tmp_path):
    (tmp_path / "bwrap").write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert of_sandbox() == ["ok   sandbox: it starts, for rewards and verifiers that run programs"]
