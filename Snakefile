"""One workflow for every recipe: train the stages, evaluate the checkpoints, judge the claims, report.

snakemake --cores                    the quickstart: recipe r1_zero, its main arm
snakemake --cores r1_zero            every arm and seed of a recipe, and its report
snakemake --cores everything         every recipe that has the scale
... --config scale=gpu seeds=5       another scale (default: cpu), another number of seeds
"""

import sys
from pathlib import Path

from recipes import command, redo
from recipes.errors import UserError
from recipes.jobs import Jobs
from recipes.recipe import load_all

QUICKSTART = "r1_zero"
TARGETS = ("all", "everything", "benchmarks", "clean_checkpoints", "train", "evaluate", "analyse", "report")

try:
    RECIPES = load_all()
    CHOICE = command.choice(RECIPES, config)
    JOBS = Jobs(RECIPES, CHOICE)
    if workflow.is_main_process:
        ARGUMENTS = command.arguments()
        for target in (ARGUMENTS and ARGUMENTS.targets) or []:
            command.check_target(RECIPES, CHOICE, target, [*RECIPES, *TARGETS])
        nodes = [node for recipe in JOBS.here() for node in JOBS.grid(recipe, CHOICE.scale, "report")]
        LOCK = redo.prepare(RECIPES, nodes, command.runs_jobs(ARGUMENTS))  # held until this process ends
except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


pathvars:
    run="results/{recipe}/{scale}/{arm}/seed{seed}",
    reports="results/{recipe}/{scale}",


wildcard_constraints:
    recipe="[a-z][a-z0-9_]*",
    scale="[a-z0-9][a-z0-9.-]*",
    arm="[a-z0-9][a-z0-9.-]*",
    seed=r"\d+",
    stage="[a-z][a-z0-9_]*",
    checkpoint="[a-z][a-z0-9_]*",
    report="report|quickstart",


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
        "python -m recipes.clean checkpoints 2> {log}"


rule train:
    input:
        unpack(JOBS.upstream),
    output:
        metrics="<run>/{stage}/metrics.json",
        curve="<run>/{stage}/curve.csv",
        provenance="<run>/{stage}/provenance.json",
    log:
        "<run>/{stage}/train.log",
    benchmark:
        "<run>/{stage}/benchmark.tsv"
    threads: JOBS.threads
    resources:
        gpu=JOBS.resource("gpu", 0),
        mem_mb=JOBS.resource("mem_mb", 4000),
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
        " python -m recipes.stages.{params.kind} --config {params.config:q} --seed {wildcards.seed} {params.inputs}"
        " --name {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.stage}"
        " --checkpoints checkpoints/{params.checkpoints} --threads {params.threads} --out {output.metrics} 2> {log}"
        " && echo {params.lineage} > {params.record}"


rule evaluate:
    input:
        unpack(JOBS.upstream),
    output:
        scores="<run>/evals/{checkpoint}.json",
        samples="<run>/evals/{checkpoint}.samples.jsonl",
    log:
        "<run>/evals/{checkpoint}.log",
    resources:
        gpu=JOBS.resource("gpu", 0),
        mem_mb=JOBS.resource("mem_mb", 4000),
        runtime=JOBS.resource("runtime", 120),
    params:
        config=JOBS.config,
        model=JOBS.model,
        lineage=JOBS.lineage,
        record=JOBS.record,
    message:
        "evaluate {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.checkpoint}"
    shell:
        "python -m evals.evaluate --config {params.config:q} --model {params.model:q}"
        " --name {wildcards.recipe}/{wildcards.scale}/{wildcards.arm}/seed{wildcards.seed}/{wildcards.checkpoint}"
        " --out {output.scores} --samples {output.samples} 2> {log}"
        " && echo {params.lineage} > {params.record}"


rule analyse:
    input:
        JOBS.members,
    output:
        "<reports>/{report}/table.csv",
        "<reports>/{report}/claims.csv",
        "<reports>/{report}/summary.txt",
    log:
        "<reports>/{report}.analyse.log",
    params:
        judged=JOBS.judged,
        seeds=JOBS.seeds,
    message:
        "analyse {wildcards.recipe}/{wildcards.scale}/{wildcards.report}"
    shell:
        "python -m analysis.analyse --recipe {wildcards.recipe} --scale {wildcards.scale} --seeds {params.seeds}"
        " --report {wildcards.report} --out results/{wildcards.recipe}/{wildcards.scale}/{wildcards.report} 2> {log}"


rule report:
    input:
        rules.analyse.output,
    output:
        "<reports>/{report}.html",
    log:
        "<reports>/{report}.html.log",
    params:
        seeds=JOBS.seeds,
    message:
        "write {output}"
    shell:
        "python -m analysis.report --recipe {wildcards.recipe} --scale {wildcards.scale} --seeds {params.seeds}"
        " --report {wildcards.report} --out {output} 2> {log}"


rule benchmarks:
    output:
        "results/benchmarks/grpo_speed.csv",
    log:
        "results/benchmarks/grpo_speed.log",
    threads: workflow.cores # nothing else runs beside a timed pair
    message:
        "time the grpo stage against plain TRL"
    shell:
        "python tests/benchmarks/grpo_speed.py --out {output} 2> {log}"


onsuccess:
    pages = {
        str(file) for job in workflow.dag.finished_jobs for file in job.output if file.endswith(".html")
    }
    for page in sorted(pages):
        print(Path(page).with_suffix("").joinpath("summary.txt").read_text().rstrip(), page, sep="\n")


onerror:
    print("A job failed: its log is shown above. The same command goes on from here.", file=sys.stderr)
