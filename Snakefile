"""One workflow for every recipe: train the stages, evaluate the checkpoints, judge the claims, report.

snakemake --cores                    the quickstart: recipe r1_zero, its main arm
snakemake --cores r1_zero            every arm and seed of a recipe, and its report
snakemake --cores everything         every recipe that claims something, at one scale
snakemake --cores preflight --config recipe=r1    two steps of each stage, before a run is paid for
... --config scale=paper seeds=5     another scale (default: cpu), another number of seeds
... --config arms=a,b seeds=1,3      these arms and seeds alone, with a report of their own: chosen.html
... --config recipe=path/mine.yaml   a recipe of your own, from anywhere; mine is then a target too
... --config seeds=auto              looks at 8, 16 and 32 seeds; what is decided stops
"""

from encore.recipe.looks import LOOK
from encore.workflow import commands, console
from encore.workflow.outputs import BENCHMARKS, EVAL_FILES, REPORT_FILES, STAGE_FILES
from encore.workflow.outputs import EVAL, REPORT, STAGE, WILDCARDS
from encore.workflow.start import start
from encore.workflow.storage import notes, variables

QUICKSTART = "r1_zero"
# LOCK: held until the end
JOBS, LOCK = start(config, QUICKSTART, workflow.is_main_process, checkpoints, workflow.storage_settings)

if JOBS.store:  # results and checkpoints lie in a bucket, and jobs may run on machines without this folder

    localrules:
        report,

    envvars:
        *variables(),


wildcard_constraints:
    **WILDCARDS,


rule all:
    input:
        JOBS.first_page(QUICKSTART),


for target, made in JOBS.targets().items():

    rule:
        name:
            target
        input:
            made,


include: commands.TOOLS


rule train:
    input:
        unpack(JOBS.upstream),
    output:
        **STAGE_FILES,
        **notes(JOBS.store, "train"),
    log:
        f"{STAGE}/train.log",
    threads: JOBS.threads
    resources:
        **JOBS.resources(),
    params:
        **JOBS.of_training(),
    message:
        f"train {commands.TRAINED}"
    shell:
        commands.TRAIN


rule evaluate:
    input:
        unpack(JOBS.upstream),
    output:
        **EVAL_FILES,
        **notes(JOBS.store, "evaluate"),
    log:
        f"{EVAL}.log",
    resources:
        **JOBS.resources(),
    params:
        **JOBS.of_evaluation(),
    message:
        f"evaluate {commands.EVALUATED}"
    shell:
        commands.EVALUATE


if JOBS.choice.auto:  # where there is a checkpoint, each job on a cluster plans the whole workflow

    checkpoint look:
        input:
            JOBS.looked_at,
        output:
            LOOK,
        log:
            f"{LOOK}.log",
        params:
            **JOBS.of_look(),
        message:
            "look at {wildcards.recipe}/{wildcards.scale} with {wildcards.look} seeds"
        shell:
            commands.LOOK


rule report:
    input:
        JOBS.members,
    output:
        **REPORT_FILES,
        **notes(JOBS.store, "report"),
        page=f"{REPORT}.html",
    log:
        f"{REPORT}.html.log",
    params:
        **JOBS.of_report(),
    message:
        f"write {commands.PAGE}"
    shell:
        commands.WRITE_REPORT


onsuccess:
    console.show_made(workflow.dag.finished_jobs, JOBS.store)


onerror:
    console.show_failure()
