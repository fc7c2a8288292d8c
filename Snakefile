"""One workflow for every recipe: train the stages, evaluate the checkpoints, judge the claims, report.

snakemake --cores                    the quickstart: recipe r1_zero, its main arm
snakemake --cores r1_zero            every arm and seed of a recipe, and its report
snakemake --cores everything         every recipe that has the scale
... --config scale=paper seeds=5     another scale (default: cpu), another number of seeds
"""

from recipes.workflow import commands, console
from recipes.workflow.outputs import BENCHMARKS, EVAL_FILES, REPORT_FILES, STAGE_FILES
from recipes.workflow.outputs import EVAL, REPORT, STAGE, WILDCARDS
from recipes.workflow.start import start

QUICKSTART = "r1_zero"
JOBS, LOCK = start(config, QUICKSTART, workflow.is_main_process)  # LOCK is held until this process ends


wildcard_constraints:
    **WILDCARDS,


rule all:
    input:
        JOBS.page(QUICKSTART, "quickstart"),


for target, made in JOBS.targets().items():

    rule:
        name:
            target
        input:
            made,


rule clean_checkpoints:
    log:
        "checkpoints/clean.log",
    localrule: True
    message:
        "remove the checkpoints that no recipe leads to any more"
    shell:
        "python -m recipes.workflow.clean 2> {log}"


rule train:
    input:
        unpack(JOBS.upstream),
    output:
        **STAGE_FILES,
    log:
        f"{STAGE}/train.log",
    threads: JOBS.threads
    resources:
        **JOBS.resources(),
    params:
        kind=JOBS.kind,
        config=JOBS.config,
        inputs=JOBS.inputs,
        lineage=JOBS.lineage,
        record=JOBS.record,
        # Resumable state is no output: Snakemake deletes outputs before a job.
        checkpoints=JOBS.checkpoints,
        # Bits depend on how many threads share a sum: the recipe's number, whatever --cores says.
        threads=JOBS.threads,
    message:
        f"train {commands.TRAINED}"
    shell:
        commands.TRAIN


rule evaluate:
    input:
        unpack(JOBS.upstream),
    output:
        **EVAL_FILES,
    log:
        f"{EVAL}.log",
    resources:
        **JOBS.resources(),
    params:
        config=JOBS.config,
        model=JOBS.model,
        # A function of `input` is not compared with that of the last run; the lineage says the same.
        judges=lambda w, input: JOBS.judges(w),
        lineage=JOBS.lineage,
        record=JOBS.record,
    message:
        f"evaluate {commands.EVALUATED}"
    shell:
        commands.EVALUATE


rule analyse:
    input:
        JOBS.members,
    output:
        **REPORT_FILES,
    log:
        f"{REPORT}.analyse.log",
    params:
        judged=JOBS.judged,
        record=JOBS.judged_record,
        seeds=JOBS.seeds,
    message:
        "analyse {wildcards.recipe}/{wildcards.scale}/{wildcards.report}"
    shell:
        commands.ANALYSE


rule report:
    input:
        rules.analyse.output,
        JOBS.page_marker,
    output:
        f"{REPORT}.html",
    log:
        f"{REPORT}.html.log",
    params:
        seeds=JOBS.seeds,
    message:
        "write {output}"
    shell:
        commands.WRITE_REPORT


rule benchmarks:
    output:
        **BENCHMARKS,
    log:
        "results/benchmarks/speed.log",
    threads: workflow.cores  # nothing else runs beside a timed pair
    message:
        "time the grpo stage, and a grid of objectives, against plain TRL"
    shell:
        "(python tests/benchmarks/grpo_speed.py --out {output.stage}"
        " && python tests/benchmarks/grid_speed.py --cores {threads} --out {output.grid}) 2> {log}"


onsuccess:
    console.show_made(workflow.dag.finished_jobs)


onerror:
    console.show_failure()
