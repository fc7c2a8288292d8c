"""Mistakes on the command line of a real run, and in its recipes: one line each."""

import pytest


@pytest.mark.slow
def test_mistake_on_the_command_line_is_one_line(project):
    done = project.snakemake("dmo")
    assert done.returncode == 2
    assert project.error(done) == 'error: no target or recipe "dmo"; did you mean "demo"?'
    assert not (project.folder / "results").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "train: a rule of single jobs"),
        # in another working folder the recipes are those beside the code
        (["--directory", "elsewhere", "dmo"], 'no target or recipe "dmo"; did you mean "demo"?'),
        (["--config", "seeds=1", "dmo"], 'no target or recipe "dmo"; did you mean "demo"?'),
    ],
)
def test_other_mistakes_on_the_command_line(project, arguments, message):
    (project.folder / "elsewhere").mkdir()
    done = project.snakemake(*arguments)
    assert done.returncode == 2
    assert project.error(done).startswith(f"error: {message}")


@pytest.mark.slow
def test_mistake_in_a_recipe_is_one_line(project):
    project.edit("demo", "dial: 5", "dail: 5")
    done = project.snakemake("demo")
    assert done.returncode == 2
    assert project.error(done) == (
        'error: recipes/demo.yaml: arms.hot.stages.rl.dail: unknown key; did you mean "dial"?'
    )


@pytest.mark.slow
def test_a_mistake_in_a_recipe_is_told_where_its_scale_is_asked_for(project):
    """A recipe with a mistake is left out, and a scale that it alone has would be unknown."""
    project.edit("demo", "scales:\n", "scales:\n  large: {stages: {rl: {dail: 5}}}\n")
    done = project.snakemake("demo", "--config", "scale=large")
    assert done.returncode == 2
    line = 'error: recipes/demo.yaml: scales.large.stages.rl.dail: unknown key; did you mean "dial"?'
    assert line in done.stderr.splitlines()
