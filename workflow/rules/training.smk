# From samples to learning curves: every seed and learning rate of a depth in one job.


rule train:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        TRAINED,
    log:
        "results/logs/train/{dataset}/depth{depth}.log",
    benchmark:
        "results/benchmarks/train/{dataset}/depth{depth}.tsv"
    threads: training_threads
    resources:
        mem_mb=megabytes_for("train"),
        runtime=minutes_for("train"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: train_made_by(**wildcards),
        options=lambda wildcards: options(train_made_by(**wildcards)["settings"]),
    message:
        "training on {wildcards.dataset}, depth {wildcards.depth}"
    shell:
        "{PYTHON} -m ntkcond.steps.train --dataset {input.dataset}"
        " --depth {wildcards.depth} {params.options}"
        " --checkpoint-minutes {config[training][checkpoint_minutes]}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule training:
    input:
        [TRAINED.format(**of) for of in in_fig3()],
    output:
        "results/training.csv",  # every epoch of every run: too long for the report
    log:
        "results/logs/training.log",
    benchmark:
        "results/benchmarks/training.tsv"
    params:
        made_by=lambda wildcards: training_made_by(),
    message:
        "table of training runs"
    shell:
        "{PYTHON} -m ntkcond.steps.training --trained {input} --output {output} --log {log}"
        " --made-by {params.made_by:q}"


rule table_generalization:
    input:
        "results/training.csv",
    output:
        reported("results/table_generalization.csv"),
        "results/table_generalization.md",
    log:
        "results/logs/table_generalization.log",
    benchmark:
        "results/benchmarks/table_generalization.tsv"
    params:
        made_by=lambda wildcards: table_generalization_made_by(),
        options=lambda wildcards: options(table_generalization_made_by()["settings"]),
    message:
        "table of test accuracies"
    shell:
        "{PYTHON} -m ntkcond.steps.table_generalization --training {input} {params.options}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule table_epochs:
    input:
        "results/training.csv",
    output:
        reported("results/table_epochs.csv"),
        "results/table_epochs.md",
    log:
        "results/logs/table_epochs.log",
    benchmark:
        "results/benchmarks/table_epochs.tsv"
    params:
        made_by=lambda wildcards: table_epochs_made_by(),
        options=lambda wildcards: options(table_epochs_made_by()["settings"]),
    message:
        "table of epochs to a training loss"
    shell:
        "{PYTHON} -m ntkcond.steps.table_epochs --training {input} {params.options}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"
