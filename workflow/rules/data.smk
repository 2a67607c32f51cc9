# Raw files, and results/datasets/{dataset}.h5 from them.


# One job for each file: the others stay as they are. `update`, because Snakemake removes outputs
# before a job, and nobody's original may be lost to that.
rule download:
    output:
        update(plan.graph.data_dir + "/{raw_file}"),
    log:
        "results/logs/download/{raw_file}.log",
    wildcard_constraints:
        raw_file="|".join(plan.raw_files),
    params:
        source=lambda wildcards: plan.raw_files[wildcards.raw_file],
        mirrors=lambda wildcards, output: plan.mirrors,
    localrule: True
    message:
        "download {wildcards.raw_file}"
    shell:
        "{plan.python}.download --source {params.source} --raw-file {wildcards.raw_file}"
        " {params.mirrors} --output {output:q} --log {log}"


# What a corpus has, from the files' headers. It may come from anywhere, whole or in
# part: its folder is therefore no output, which Snakemake would remove before a job.
rule corpus:
    input:
        unpack(plan.inputs("corpus")),
    output:
        plan.patterns["corpus"],
    log:
        "results/logs/corpus/{dataset}.log",
    benchmark:
        "results/benchmarks/corpus/{dataset}.tsv"
    params:
        options=plan.options("corpus"),
        mirrors=lambda wildcards, output: plan.mirrors,
    localrule: True
    message:
        "files of {wildcards.dataset}"
    shell:
        "{plan.python}.corpus {params.options} --data-dir {plan.graph.data_dir:q}"
        " {params.mirrors} --output {output} --log {log}"


rule dataset:
    input:
        unpack(plan.inputs("dataset")),
    output:
        plan.patterns["dataset"],
    log:
        "results/logs/dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/dataset/{dataset}.tsv"
    threads: plan.threads("dataset")
    resources:
        mem_mb=plan.megabytes("dataset"),
        runtime=plan.minutes("dataset"),
    params:
        options=plan.options("dataset"),
    message:
        "samples of {wildcards.dataset}"
    shell:
        "{plan.python}.dataset {params.options} --data-dir {plan.graph.data_dir:q}"
        " --threads {threads} --output {output} --log {log}"
