# Raw files, and results/datasets/{dataset}.h5 from them.


# One job for each file: the others stay as they are. `update`, because Snakemake removes outputs
# before a job, and nobody's original may be lost to that.
rule download:
    output:
        update(plan.raw_pattern),
    log:
        "results/logs/download/{raw_file}.log",
    wildcard_constraints:
        raw_file="|".join(plan.raw_files),
    localrule: True
    params:
        command=plan.download_command(),
    message:
        "download {wildcards.raw_file}"
    shell:
        "{params.command} --output {output:q} --log {log}"


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
    localrule: True
    params:
        command=plan.command("corpus"),
    message:
        "files of {wildcards.dataset}"
    shell:
        "{params.command} --output {output} --log {log}"


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
        **plan.resources("dataset"),
    params:
        command=plan.command("dataset"),
    message:
        "samples of {wildcards.dataset}"
    shell:
        "{params.command} --threads {threads} --output {output} --log {log}"
