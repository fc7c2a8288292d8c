"""One workflow for every recipe: train the stages, evaluate the checkpoints, judge the claims, report.

snakemake --cores                    the quickstart: recipe r1_zero, its main arm
snakemake --cores r1_zero            every arm and seed of a recipe, and its report
snakemake --cores everything         every recipe that has the scale
... --config scale=paper seeds=5     another scale (default: cpu), another number of seeds
"""

import sys
from pathlib import Path

from snakemake.logging import logger

from recipes.errors import UserError
from recipes.spec.graph import Graph
from recipes.spec.load import load_all
from recipes.spec.recipe import REPORTS
from recipes.workflow import stale, targets
from recipes.workflow.jobs import Jobs

QUICKSTART = "r1_zero"

try:
    RECIPES = load_all()
    CHOICE = targets.choice(RECIPES, config)
    GRAPH = Graph(RECIPES)
    JOBS = Jobs(GRAPH, CHOICE)
    if workflow.is_main_process:
        ARGUMENTS = targets.arguments()
        ASKED = targets.asked(GRAPH, CHOICE, ARGUMENTS, QUICKSTART)
        RUNNING = targets.runs_jobs(ARGUMENTS)
        # held until this process ends
        LOCK = stale.prepare(GRAPH, JOBS.nodes(ASKED), JOBS.judgements(ASKED), RUNNING)
        if ARGUMENTS and RUNNING:
            logger.addFilter(targets.Unchanged(ASKED))
except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


wildcard_constraints:
    recipe="[a-z][a-z0-9_]*",
    scale="[a-z0-9][a-z0-9.-]*",
    arm="[a-z0-9][a-z0-9.-]*",
    seed=r"\d+",
    stage="[a-z][a-z0-9_]*",
    checkpoint="[a-z][a-z0-9_]*",
    report="|".join(REPORTS),


rule all:
    input:
        f"results/{QUICKSTART}/{CHOICE.scale}/quickstart.html",


for recipe in RECIPES:

    rule:
        name:
            recipe
        input:
            f"results/{recipe}/{CHOICE.scale}/report.html",


rule everything:
    input:
        expand("results/{recipe}/{scale}/report.html", recipe=JOBS.here(), scale=CHOICE.scale),


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
        metrics="results/{recipe}/{scale}/{arm}/seed{seed}/{stage}/metrics.json",
        curve="results/{recipe}/{scale}/{arm}/seed{seed}/{stage}/curve.csv",
        provenance="results/{recipe}/{scale}/{arm}/seed{seed}/{stage}/provenance.json",
    log:
        "results/{recipe}/{scale}/{arm}/seed{seed}/{stage}/train.log",
    benchmark:
        "results/{recipe}/{scale}/{arm}/seed{seed}/{stage}/benchmark.tsv"
    threads: JOBS.threads
    resources:
        gpu=JOBS.resource("gpu", 0),
        mem_mb=JOBS.memory,
        runtime=JOBS.resource("runtime", 120),
    params:
        kind=JOBS.kind,
        config=JOBS.config,
        inputs=JOBS.inputs,
        # Resumable state: no output, for Snakemake deletes those before a job; named by all that shaped it.
        lineage=JOBS.lineage,
        record=JOBS.record,
        checkpoints=lambda w: f"{w.recipe}/{w.scale}/{w.arm}/seed{w.seed}/{w.stage}/{JOBS.lineage(w)[:12]}",
        # Bits depend on how many threads share a sum: the recipe's number, whatever --cores says.
        threads=JOBS.threads,
    message:
        "train {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.stage}"
    shell:
        "OMP_NUM_THREADS={params.threads} MKL_NUM_THREADS={params.threads}"
        " python -m recipes.stages {params.kind} --config {params.config:q} --seed {wildcards.seed} {params.inputs}"
        " --name {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.stage}"
        " --checkpoints checkpoints/{params.checkpoints} --threads {params.threads} --gpus {resources.gpu} --out {output.metrics} 2> {log}"
        " && echo {params.lineage} > {params.record}"


rule evaluate:
    input:
        unpack(JOBS.upstream),
    output:
        scores="results/{recipe}/{scale}/{arm}/seed{seed}/evals/{checkpoint}.json",
        samples="results/{recipe}/{scale}/{arm}/seed{seed}/evals/{checkpoint}.samples.jsonl",
    log:
        "results/{recipe}/{scale}/{arm}/seed{seed}/evals/{checkpoint}.log",
    resources:
        gpu=JOBS.resource("gpu", 0),
        mem_mb=JOBS.memory,
        runtime=JOBS.resource("runtime", 120),
    params:
        config=JOBS.config,
        model=JOBS.model,
        # A function of `input` is not compared with that of the last run; the lineage says the same.
        judges=lambda w, input: JOBS.judges(w),
        lineage=JOBS.lineage,
        record=JOBS.record,
    message:
        "evaluate {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.checkpoint}"
    shell:
        "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1"
        " python -m evals.evaluate --config {params.config:q} --model {params.model:q} {params.judges}"
        " --name {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.checkpoint}"
        " --gpus {resources.gpu} --out {output.scores} --samples {output.samples} 2> {log}"
        " && echo {params.lineage} > {params.record}"


rule analyse:
    input:
        JOBS.members,
    output:
        "results/{recipe}/{scale}/{report}/table.csv",
        "results/{recipe}/{scale}/{report}/claims.csv",
        "results/{recipe}/{scale}/{report}/summary.txt",
    log:
        "results/{recipe}/{scale}/{report}.analyse.log",
    params:
        judged=JOBS.judged,
        record=JOBS.judged_record,
        seeds=JOBS.seeds,
    message:
        "analyse {wildcards.recipe}/{wildcards.scale}/{wildcards.report}"
    shell:
        "python -m analysis.analyse --recipe {wildcards.recipe} --scale {wildcards.scale} --seeds {params.seeds}"
        " --report {wildcards.report} --out results/{wildcards.recipe}/{wildcards.scale}/{wildcards.report} 2> {log}"
        " && echo {params.judged} > {params.record}"


rule report:
    input:
        rules.analyse.output,
    output:
        "results/{recipe}/{scale}/{report}.html",
    log:
        "results/{recipe}/{scale}/{report}.html.log",
    params:
        seeds=JOBS.seeds,
    message:
        "write {output}"
    shell:
        "python -m analysis.report --recipe {wildcards.recipe} --scale {wildcards.scale} --seeds {params.seeds}"
        " --report {wildcards.report} --out {output} 2> {log}"


rule benchmarks:
    output:
        stage="results/benchmarks/grpo_speed.csv",
        grid="results/benchmarks/grid_speed.csv",
    log:
        "results/benchmarks/speed.log",
    threads: workflow.cores  # nothing else runs beside a timed pair
    message:
        "time the grpo stage, and a grid of objectives, against plain TRL"
    shell:
        "(python tests/benchmarks/grpo_speed.py --out {output.stage}"
        " && python tests/benchmarks/grid_speed.py --cores {threads} --out {output.grid}) 2> {log}"


onsuccess:
    made = {str(file) for job in workflow.dag.finished_jobs for file in job.output}
    targets.show(sorted(Path(file) for file in made if file.endswith(".html")))


onerror:
    print("A job failed: its log is shown above. The same command goes on from here.", file=sys.stderr)
