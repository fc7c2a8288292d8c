"""What a job asks of Slurm: its GPUs on as many nodes as it says, and no longer than partitions grant."""

from collections import namedtuple
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import yaml
from papers import GRAPH, RECIPES
from snakemake_executor_plugin_slurm import Executor
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string

from encore.recipe.graph import Graph, Node
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe
from encore.workflow.jobs import Jobs
from encore.workflow.targets import Choice

PROFILE = Path(__file__).parents[2] / "profiles/slurm/config.yaml"
DAY = 24 * 60
PARAMS = {
    "run_uuid": "u",
    "slurm_logfile": "l",
    "comment_str": "c",
    "account": "",
    "partition": "",
    "workdir": "",
}
Job = namedtuple("Job", "resources threads")


class Named(dict):
    """As Snakemake's resources and wildcards: each is an entry and an attribute."""

    __getattr__ = dict.__getitem__


def asked(recipe: str, stage: str, kind: str = "stage") -> Named:
    """The resources of a stage or of an evaluation at scale paper, over the defaults of the profile."""
    jobs = Jobs(GRAPH, Choice("paper", None))
    place = {"recipe": recipe, "scale": "paper", "arm": "base-recipe", "seed": "0", kind: stage}
    own = {name: ask(Named(place)) for name, ask in jobs.resources().items()}
    given = yaml.safe_load(PROFILE.read_text())["default-resources"] | own
    return Named({name: value for name, value in given.items() if value is not None})  # as Snakemake does


def test_the_gpus_of_a_job_are_on_one_node():
    command = get_submit_command(Job(asked("instructgpt", "ppo"), 1), PARAMS)
    assert " --nodes=1 " in command
    assert asked("instructgpt", "ppo")["gpu"] == 8
    assert "mpi" not in asked("instructgpt", "ppo")  # else it would not be bound to what it asks for


def test_a_stage_of_several_nodes_has_a_task_on_each():
    """128 GPUs train on 16 nodes; Snakemake starts no srun around it (`mpi`)."""
    job = Job(asked("dapo", "grpo"), 1)
    command = get_submit_command(job, PARAMS) + set_gres_string(job)
    assert {"--nodes=16", "--ntasks=16", "--gpus=128", "--cpus-per-gpu=8"} <= {*command.split()}
    assert "--ntasks-per" not in command
    assert job.resources["mpi"] == "srun"
    assert f" --mem {4000 + 8 * 64_000} " in command  # of each node


def test_an_evaluation_is_run_on_one_of_them():
    command = get_submit_command(Job(asked("gspo", "after", "checkpoint"), 1), PARAMS)
    assert " --nodes=1 " in command
    assert "mpi" not in asked("gspo", "after", "checkpoint")
    spec = deepcopy(RECIPES["gspo"].layers.content)
    own = spec["scales"]["paper"]["evals"].pop("resources")
    assert asked("gspo", "after", "checkpoint")["gpu"] == own["gpu"] == 4
    graph = Graph({**RECIPES, "gspo": Recipe("gspo", Layers(spec))})
    assert graph.resources(Node("gspo", "paper", "base-recipe", 0, "after", "eval")).gpu == 8


@pytest.mark.parametrize("recipe", [name for name, recipe in RECIPES.items() if "paper" in recipe.scales])
def test_no_job_asks_for_more_than_two_days(recipe):
    arm = RECIPES[recipe].arms("paper")[0]
    for stage in RECIPES[recipe].stages("paper", arm):
        said = GRAPH.resources(Node(recipe, "paper", arm, 0, stage, "stage")).runtime
        minutes = asked(recipe, stage)["runtime"]
        assert minutes == (min(said, 2 * DAY) if said else minutes)
        assert minutes <= 2 * DAY


def test_ten_days_are_asked_for_by_two():
    """R1-Zero's 198 hours: sbatch -t takes minutes, and 14,400 of them are ten days."""
    assert GRAPH.resources(Node("r1_zero", "paper", "base-recipe", 0, "grpo", "stage")).runtime == 10 * DAY
    assert " -t 2880 " in get_submit_command(Job(asked("r1_zero", "grpo"), 1), PARAMS)


def test_the_executor_has_no_arrays_that_a_grid_could_use():
    """It leaves out jobs that are not all that can start; once it submits them, change docs/slurm.md.

    Snakemake gives it 50 of 500 jobs, as many as the profile lets into the queue.
    """
    jobs = [Mock(rule=SimpleNamespace(name="train"), is_group=lambda: False) for _ in range(500)]
    executor = Mock(array_jobs={"train"}, max_array_size=1000, workflow=Mock(dag=Mock(ready_jobs=jobs[50:])))
    Executor.run_jobs(executor, jobs[:50])
    executor._submit_array_jobs.assert_not_called()
    executor._submit_job.assert_not_called()
    executor.array_jobs = set()
    Executor.run_jobs(executor, jobs[:50])
    assert executor._submit_job.call_count == 50
