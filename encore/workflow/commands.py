"""The shell commands of the Snakefile's rules, with the placeholders that Snakemake fills in."""

import shlex
from pathlib import Path

from encore.recipe.graph import RUN
from encore.workflow import after_job, warm
from encore.workflow.outputs import EVAL_FILES, REPORT, REPORT_FILES, STAGE_FILES


def _literal(command: str) -> str:
    """Return a command with doubled braces, so that Snakemake takes none of them for a placeholder."""
    return command.replace("{", "{{").replace("}", "}}")


def _place(pattern: str) -> str:
    """Return a file's path in results/; {output} would name its copy if there is a bucket."""
    return pattern.replace("{", "{wildcards.")


TOOLS = str(Path(__file__).with_name("tools.smk"))  # the file of further rules, such as `preflight`
# recipe/scale/arm/seedN/name of a job that trains, and of a job that evaluates
NAME = _place(RUN.removeprefix("results/"))
TRAINED = f"{NAME}/{{wildcards.stage}}"
EVALUATED = f"{NAME}/{{wildcards.checkpoint}}"
METRICS, SCORES = _place(STAGE_FILES["metrics"]), _place(EVAL_FILES["scores"])
PAGE, TABLE = _place(f"{REPORT}.html"), _place(REPORT_FILES["table"])

# the last command of a job; see encore/workflow/after_job.py
AFTER_JOB = _literal(f"python -I -S {shlex.quote(after_job.__file__)}")
NOTE = f"&& {AFTER_JOB} made"
# the shell would report a killed job with the whole command; the job's log says what killed it
TOLD = f"2> /dev/null || {AFTER_JOB} ended $? {{log}}"
TRAIN = (
    "{{ OMP_NUM_THREADS={params.threads} MKL_NUM_THREADS={params.threads}"
    f" {{params.carried}} {_literal(warm.command('encore.stages'))}"
    " {params.kind} --config {params.config:q} --seed {wildcards.seed}"
    f" {{params.inputs}} --name {TRAINED} --checkpoints checkpoints/{{params.checkpoints}}"
    " --threads {params.threads} --gpus {resources.gpu} --vllm-gpus {resources.vllm_gpu}"
    " --nodes {resources.nodes} --shard {resources.shard} --track {resources.track}"
    f" --out {METRICS} 2> {{log}}; }}}}"
    f" {TOLD} {NOTE} {METRICS} {{params.lineage}}"
)
EVALUATE = (
    "{{ OMP_NUM_THREADS=1 MKL_NUM_THREADS=1"
    f" {{params.carried}} {_literal(warm.command('evals.evaluate'))}"
    " --config {params.config:q} --model {params.model:q} {params.judges}"
    f" --name {EVALUATED} --gpus {{resources.gpu}}"
    f" --out {SCORES} --samples {_place(EVAL_FILES['samples'])} 2> {{log}}; }}}}"
    f" {TOLD} {NOTE} {SCORES} {{params.lineage}}"
)

WRITE_REPORT = (
    "{params.carried} python -m analysis.report {params.of} --scale {wildcards.scale}"
    f" --seeds {{params.seeds}} --report {{wildcards.report}} --out {PAGE} 2> {{log}}"
    f" {NOTE} {PAGE} {NOTE} {TABLE} {{params.judged}}"
)
LOOK = (
    "python -m analysis.look {params.of} --scale {wildcards.scale} --seeds {wildcards.look}"
    f" --out {{output}} 2> {{log}} {NOTE} {{output}} {{params.judged}}"
)
BENCHMARKS = (
    "(python tests/benchmarks/grpo_speed.py --out {output.stage}"
    " && python tests/benchmarks/grpo_speed.py --recipe r1_zero --out {output.small}"
    " && python tests/benchmarks/grpo_ladder.py --out {output.ladder}"
    " && python tests/benchmarks/grid_speed.py --cores {threads} --out {output.grid}"
    " && python tests/benchmarks/plan_speed.py --out {output.plan}) 2> {log}"
)
FAULTS = "(python tests/faults/table.py && python tests/faults/kills.py 200) 2> {log}"
# status 1 means that a job does not fit its machine; the printed plan says so too, so it is no failure
PLAN = "python -m encore.forecast plan {params.asked} 2> {log} || test $? = 1"
PREFLIGHT = "python -m encore.forecast preflight {params.options} 2> {log}"
GALLERY = (
    "(python -m analysis.gallery --records && python -m analysis.gallery --scale {params.scale}) 2> {log}"
)
