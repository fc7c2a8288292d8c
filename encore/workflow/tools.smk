"""Rules beside the workflow: what is asked for by name alone."""


rule clean_checkpoints:
    log:
        "checkpoints/clean.log",
    localrule: True
    message:
        "remove the checkpoints that no recipe leads to any more"
    shell:
        "python -m encore.workflow.clean 2> {log}"


rule gallery:
    log:
        "results/gallery.log",
    localrule: True
    params:
        scale=JOBS.choice.scale,
    message:
        "pages of all records, and a first page of the reports at the scale"
    shell:
        commands.GALLERY


rule benchmarks:
    output:
        **BENCHMARKS,
    log:
        "results/benchmarks/speed.log",
    threads: workflow.cores  # nothing else runs beside a timed pair
    message:
        "time the grpo stage, of a real model too, and a grid, against plain TRL; and large plans"
    shell:
        commands.BENCHMARKS


rule faults:
    log:
        "results/faults.log",
    message:
        "list the faults that tests inject, and kill stages of every kind"
    shell:
        commands.FAULTS


rule plan:
    log:
        "results/plan.log",
    localrule: True
    params:
        asked=JOBS.choice.plan,
    message:
        "what the run would cost"
    shell:
        commands.PLAN


rule preflight:
    log:
        "results/preflight.log",
    retries: 0  # what it found is found
    resources:
        **JOBS.resources_of_preflight(),
    params:
        options=JOBS.choice.preflight,
    message:
        "try the run before it is paid for"
    shell:
        commands.PREFLIGHT
