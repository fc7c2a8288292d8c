"""Results of another folder: taken where they are what the recipes here make and undamaged, else left."""

import json
import shutil
from pathlib import Path

import pytest

from encore.recipe.graph import Node
from encore.runtime import digests, files, sentinel
from encore.workflow import after_job, bring, marks

STAGE = Node("base", "cpu", "base-recipe", 0, "pretrain", "stage")
EVALUATION = Node("demo", "cpu", "base-recipe", 0, "before", "eval")
MODEL = "checkpoints/base/w/final"


@pytest.fixture
def other(demo, project, tmp_path_factory, monkeypatch) -> Path:
    """The folder of another run, with a stage and an evaluation of it; the working folder has nothing."""
    folder = tmp_path_factory.mktemp("other")
    metrics, scores, model = folder / STAGE.sentinel, folder / EVALUATION.sentinel, folder / MODEL
    for place in (metrics.parent, scores.parent, model):
        place.mkdir(parents=True)
    (model / "weights").write_text("good")
    for name in ("curve.csv", "provenance.json", "train.log", "more/figure.svg"):
        (metrics.parent / name).parent.mkdir(exist_ok=True)
        (metrics.parent / name).write_text(name)
    record = {"model": MODEL, "digest": sentinel.digest(model), "files": sentinel.sizes(model)}
    files.write_json(metrics, record)
    scores.with_name("before.samples.jsonl").write_text("{}\n")
    scores.with_name("before.log").write_text("a log")
    files.write_json(scores, {"digest": record["digest"], "tasks": {}})
    for result, node in ((metrics, STAGE), (scores, EVALUATION)):
        after_job.main(["made", str(result), demo.lineage(node)])
    monkeypatch.chdir(project.folder)
    return folder


def tree(folder: Path) -> dict[str, str]:
    found = [
        path for name in ("results", "checkpoints") for path in (folder / name).rglob("*") if path.is_file()
    ]
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def test_all_of_a_result_is_brought_once(demo, other):
    assert bring.bring(demo, other) == ([Path(STAGE.sentinel), Path(EVALUATION.sentinel)], [])
    assert tree(Path()) == tree(other)
    assert marks.mark(demo, [STAGE, EVALUATION], {}) == []
    assert bring.bring(demo, other) == ([], [])


@pytest.mark.fault("a result from elsewhere is damaged or of other settings", "bringing in another folder",
                   "left there, told in one line; the others are brought")  # fmt: skip
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (
            lambda o: (o / STAGE.sentinel).with_name("curve.csv").write_text("cut"),
            "its curve.csv has changed",
        ),
        (
            lambda o: (o / MODEL / "weights").write_text("evil"),
            f"its model {MODEL} has changed (digest mismatch)",
        ),
        (lambda o: shutil.rmtree(o / MODEL), f"its model {MODEL} is missing"),
        (
            lambda o: digests.record(o / STAGE.sentinel).write_text("other"),
            "it was made from other settings",
        ),
        (
            lambda o: digests.record(o / STAGE.sentinel).unlink(),
            "there is no record of what it was made from",
        ),
    ],
)
def test_what_is_not_as_its_job_left_it_stays_there(demo, other, harm, says):
    harm(other)
    brought, left = bring.bring(demo, other)
    assert brought == [Path(EVALUATION.sentinel)]
    assert left == [f"{other / STAGE.sentinel}: {says}; left there"]
    assert not Path(STAGE.sentinel).exists()


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd"])
def test_a_list_of_digests_names_no_file_outside(demo, other, name):
    path = digests.listing(other / STAGE.sentinel)
    path.write_text(path.read_text() + f"{'0' * 64}  {name}\n")
    _, (line,) = bring.bring(demo, other)
    assert "its metrics.sha256 is not readable" in line


@pytest.mark.parametrize("model", ["/etc", "../elsewhere", "checkpoints/../../x"])
def test_no_weights_from_outside_the_folder(demo, other, model):
    path = other / STAGE.sentinel
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model": model}))
    digests.note(path)
    _, (line,) = bring.bring(demo, other)
    assert "is not in the folder of the run" in line


def test_what_no_recipe_has_and_what_is_here_already(demo, other):
    strange = other / "results/demo/cpu/gone/seed0/rl/metrics.json"
    strange.parent.mkdir(parents=True)
    strange.write_text("{}")
    here = Path(STAGE.sentinel)
    here.parent.mkdir(parents=True)
    here.write_text("of this folder")
    digests.record(here).write_text(demo.lineage(STAGE))
    brought, left = bring.bring(demo, other)
    assert brought == [Path(EVALUATION.sentinel)]
    assert left == [f"{strange}: no recipe here has its place; left there"]
    assert here.read_text() == "of this folder"


def test_a_folder_that_is_no_run_is_one_line(tmp_path, capsys):
    assert bring.main([str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"error: {tmp_path}: no folder results in it; expected the folder of a run\n"
    )


@pytest.mark.slow
def test_a_grid_in_two_parts_is_brought_together(demo, project, tmp_path_factory, monkeypatch, capsys):
    parts = [type(project)(tmp_path_factory.mktemp("part") / "run") for _ in range(2)]
    for which, part in enumerate(parts, 1):
        shutil.copytree(project.folder, part.folder)
        assert part.run("demo", "--config", f"part={which}/2")
        assert not list((part.folder / "results").rglob("*.html"))
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(bring, "load_all", lambda: demo.recipes)
    for part in parts:
        assert bring.main([str(part.folder)]) == 0
        assert capsys.readouterr().out.endswith("0 left there\n")
    assert project.run("demo") == []  # no stage, no evaluation
    assert (project.folder / "results/demo/cpu/report.html").exists()
