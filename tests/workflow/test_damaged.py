"""A file of a finished result that is no more what its job left: told in one line, its job done again."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from encore.recipe.graph import Node
from encore.runtime import digests, files, sentinel
from encore.workflow import after_job, marks

STAGE = Node("base", "cpu", "base-recipe", 0, "pretrain", "stage")
EVALUATION = Node("demo", "cpu", "base-recipe", 0, "before", "eval")
TABLE = Path("results/demo/cpu/report/table.csv")
PAGE = Path("results/demo/cpu/report.html")
JUDGED = "what it is judged from"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def finished(demo, project, monkeypatch) -> Callable[[], list[str]]:
    """A stage, an evaluation of it, an analysis and a page, as their rules leave them; what a start says."""
    monkeypatch.chdir(project.folder)
    metrics, scores = Path(STAGE.sentinel), Path(EVALUATION.sentinel)
    model = Path("checkpoints/w/final")
    put(model / "weights", "good")
    put(metrics.with_name("curve.csv"), "step,metric,value\n1,loss,0.5\n2,loss,0.25\n")
    put(metrics.with_name("ratios.csv"), "level,low,high,count\n")
    put(metrics.with_name("completions.jsonl"), '{"step": 1}\n{"step": 2}\n')
    put(metrics.with_name("provenance.json"), "{}")
    put(metrics.with_name("train.log"), "a log")
    files.write_json(metrics, sentinel.of_folder(model) | {"metrics": {"last/loss": 0.25}})
    put(scores.with_name("before.samples.jsonl"), '{"correct": 1}\n{"correct": 0}\n')
    files.write_json(scores, {"digest": sentinel.digest(model), "tasks": {}})
    for name in ("table.csv", "claims.csv", "summary.txt", "figures/arms.svg"):
        put(TABLE.parent / name, f"the content of {name}\n")
    put(PAGE, "<html>a page</html>")
    ends = {metrics: demo.lineage(STAGE), scores: demo.lineage(EVALUATION), TABLE: JUDGED}
    for result, made_from in ends.items():
        assert after_job.main(["made", str(result), made_from]) == 0
    assert after_job.main(["made", str(PAGE)]) == 0
    say = lambda: marks.mark(demo, [STAGE, EVALUATION], {TABLE: JUDGED})  # noqa: E731
    assert say() == []
    return say


def test_a_file_in_the_place_of_a_folder_is_an_error(demo, project, monkeypatch):
    monkeypatch.chdir(project.folder)
    Path("results").write_text("")
    with pytest.raises(NotADirectoryError):
        marks.mark(demo, [STAGE, EVALUATION], {})


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def of_same_size_and_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"9")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def in_its_place(path: Path) -> None:
    path.unlink()
    put(path / "something", "of the user's")


HARMS = {
    "cut": cut,
    "garbage": lambda path: path.write_bytes(bytes(range(256))),
    "missing": Path.unlink,
    "same size and time": of_same_size_and_time,
}


@pytest.mark.fault(
    "a file is cut, garbage, missing, or another of the same size and time",
    "metrics, curves, ratios, completions, provenance, scores, samples, tables, figures, page",
    "told in one line at the next start; its job is done again",
)
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize(
    ("result", "file"),
    [
        (STAGE.sentinel, "metrics.json"),
        (STAGE.sentinel, "curve.csv"),
        (STAGE.sentinel, "ratios.csv"),
        (STAGE.sentinel, "completions.jsonl"),
        (STAGE.sentinel, "provenance.json"),
        (EVALUATION.sentinel, "before.json"),
        (EVALUATION.sentinel, "before.samples.jsonl"),
        (TABLE, "table.csv"),
        (TABLE, "claims.csv"),
        (TABLE, "figures/arms.svg"),
        (PAGE, "report.html"),
    ],
)
def test_a_damaged_file_has_its_job_done_again(finished, result, file, harm):
    result = Path(result)
    HARMS[harm](result.parent / file)
    lines = finished()
    if not result.exists():  # Snakemake itself sees that it is to be made
        told = [f"{PAGE}: its tables are gone; redoing it"] if result == TABLE else []
        assert lines == told
        return
    assert lines == [
        f"{result}: its {file} {'is missing' if harm == 'missing' else 'has changed'}; redoing it"
    ]
    assert marks.markers(result)


def test_a_log_or_a_file_of_the_users_own_is_no_part_of_a_result(finished):
    folder = Path(STAGE.sentinel).parent
    (folder / "train.log").unlink()
    put(folder / "notes.txt", "mine")
    assert finished() == []


@pytest.mark.fault(
    "a folder stands in the place of a file",
    "metrics.json, its records, ratios.csv",
    "moved aside and told; its job is done again",
)
@pytest.mark.parametrize("file", ["metrics.json", "metrics.lineage", "metrics.sha256", "ratios.csv"])
def test_a_folder_in_the_place_of_a_file_is_moved_aside(finished, file):
    path = Path(STAGE.sentinel).with_name(file)
    in_its_place(path)
    (line,) = finished()
    place = f"a folder stood in the place of {file}, now beside it (.aside)"
    assert line == f"{STAGE.sentinel}: {place}; redoing it"
    assert not path.exists()
    (aside,) = path.parent.glob(f"{file}.*.aside")
    assert (aside / "something").read_text() == "of the user's"
    assert aside not in [file.parent for file in digests.listed(Path(TABLE)) or {}]


@pytest.mark.fault(
    "a record is binary or cut short",
    "metrics.lineage, metrics.sha256",
    "told in one line; its job is done again",
)
@pytest.mark.parametrize("file", ["metrics.lineage", "metrics.sha256"])
def test_a_record_that_is_binary_or_cut_short_stops_no_start(finished, file):
    path = Path(STAGE.sentinel).with_name(file)
    for data in (b"\xff\xfe\x00\x80", path.read_bytes()[:20]):
        path.write_bytes(data)
        (line,) = finished()
        assert line.startswith(f"{STAGE.sentinel}: ")


@pytest.mark.fault(
    "metrics.json is JSON of another type", "a finished stage", "told in one line; its job is done again"
)
@pytest.mark.parametrize(
    "wrong",
    [[], "text", 3, None, {}, {"model": 3, "digest": "x"}, {"model": "m", "digest": None},
     {"model": "m", "digest": "d", "steps": []}, {"model": "m", "digest": "d", "steps": {"1": 2}},
     {"model": "m", "digest": "d", "upstream": {"policy": 1}}, {"model": "m", "digest": "d", "inputs": "x"}],
)  # fmt: skip
def test_a_sentinel_of_another_type_is_made_again(finished, wrong):
    """Also where there is no list of digests, as of results from before there were any."""
    metrics = Path(STAGE.sentinel)
    metrics.write_text(json.dumps(wrong))
    digests.listing(metrics).unlink()
    (line,) = finished()
    assert line == f"{metrics}: it is not readable; redoing it"


def test_results_without_a_list_are_taken_as_they_are_and_get_one(finished):
    lists = sorted(Path("results").rglob("*.sha256"))
    assert len(lists) == 4
    before = [path.read_text() for path in lists]
    for path in lists:
        path.unlink()
    assert finished() == []
    assert [path.read_text() for path in lists] == before
    cut(Path(STAGE.sentinel).with_name("curve.csv"))
    assert len(finished()) == 1


@pytest.mark.fault("the disk is full", "noting the digests of a result",
                   "one line; the result counts as not made")  # fmt: skip
def test_a_list_that_cannot_be_written_whole_is_not_there(finished):
    result = Path(STAGE.sentinel)
    before = digests.listing(result).read_text()
    full = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); "
    full += f"sys.argv[:] = ['after_job', 'made', {str(result)!r}, 'lineage']; "
    full += f"runpy.run_path({after_job.__file__!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", full], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == f"error: {result}: File too large\n"
    assert digests.listing(result).read_text() == before


def test_a_list_is_one_that_sha256sum_reads(finished):
    for path in sorted(Path("results").rglob("*.sha256")):
        done = subprocess.run(
            ["sha256sum", "--strict", "-c", path.name], cwd=path.parent, capture_output=True
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.fault(
    "several files are damaged at once",
    "stages, evaluations, tables, page of one run",
    "one line each; these jobs alone are done again",
)
@pytest.mark.slow
def test_all_damage_at_once_is_told_and_redone_alone(project):
    project.run()
    results = project.folder / "results"
    rl = results / "demo/cpu/base-recipe/seed0/rl"
    evals = results / "demo/cpu/base-recipe/seed0/evals"
    (rl / "curve.csv").write_text("step,met")
    (rl / "metrics.lineage").write_bytes(b"\xff\x00")
    (evals / "before.samples.jsonl").write_text("garbage")
    in_its_place(evals / "after.json")
    (results / "demo/cpu/quickstart/claims.csv").write_text("")
    (results / "demo/cpu/quickstart.html").write_text("<html")
    before = project.snakemake("--dry-run").stderr
    says = ["rl/metrics.json: it was made from other settings", "before.samples.jsonl has changed"]
    says += ["in the place of after.json", "claims.csv has changed", "its quickstart.html has changed"]
    for told in says:
        assert before.count(told) == 1, before
    again = [f"demo/cpu/base-recipe/seed0/{name}" for name in ("after", "before", "rl")]
    assert project.run() == again
    assert (results / "demo/cpu/quickstart/claims.csv").read_text() != ""
    assert (results / "demo/cpu/quickstart.html").read_text() == "<html>"
    assert project.run() == []
    assert "redoing" not in project.snakemake().stderr


@pytest.mark.fault("results/ is read-only", "at the start", "one line that names it; nothing runs")
@pytest.mark.slow
def test_a_results_folder_that_cannot_be_written_is_one_line(project):
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs the right to mount a folder read-only")
    project.run()
    results = project.folder / "results"
    (results / "demo/cpu/base-recipe/seed0/rl/curve.csv").write_text("cut")
    subprocess.run(["mount", "--bind", results, results], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", results], check=True)
        done = project.snakemake()
    finally:
        subprocess.run(["umount", results], check=True)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert line.endswith("Read-only file system; mend that and run the same command")
    assert "Traceback" not in done.stderr
    assert project.run() == ["demo/cpu/base-recipe/seed0/rl"]


@pytest.mark.slow
def test_it_is_said_at_the_start_and_the_choice_is_one_that_works(project):
    assert len(project.run()) == 5
    for path in (project.folder / "results").rglob("provenance.json"):
        path.write_text(json.dumps({"versions": {"python": "2.7"}}))
    for path in (project.folder / "results").rglob("*.sha256"):  # these results are the user's own now
        path.unlink()
    says = "warning: 3 stages were made with python 2.7"
    assert says in project.snakemake("--dry-run").stderr
    assert project.run() == []
    assert len(project.run("--forcerun", "train")) == 5
    assert says not in project.snakemake("--dry-run").stderr
