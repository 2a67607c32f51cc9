# Raw files, and the samples that are made of them.


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
    conda:
        "../envs/ntkcond.yaml"
    params:
        source=plan.source_of_raw_file,
        mirrors=plan.mirrors,
    message:
        "download {wildcards.raw_file}"
    shell:
        "python -m ntkcond.steps.download --source {params.source}"
        " --raw-file {wildcards.raw_file} {params.mirrors} --output {output:q} --log {log:q}"


# All that the figures read: snakemake -j4 -k downloads
rule downloads:
    input:
        plan.downloads,
    localrule: True


rule corpus:
    output:
        "results/corpora/{dataset}.h5",
    log:
        "results/logs/corpus/{dataset}.log",
    benchmark:
        "results/benchmarks/corpus/{dataset}.tsv"
    # where Snakemake runs, which has a network: it may have to be downloaded
    localrule: True
    conda:
        "../envs/ntkcond.yaml"
    params:
        settings=plan.settings("corpus"),
        code=plan.code("corpus"),
        versions=plan.versions("corpus"),
        content=plan.content("corpus"),
        data_dir=plan.data_dir,
        mirrors=plan.mirrors,
    message:
        "corpus {wildcards.dataset}"
    shell:
        "python -m ntkcond.steps.corpus {params.settings:q}"
        " --data-dir {params.data_dir:q} {params.mirrors} --output {output} --log {log}"


rule dataset:
    input:
        # raw files, a user's own, or the list of a corpus
        unpack(plan.inputs("dataset")),
    output:
        "results/datasets/{dataset}.h5",
    log:
        "results/logs/dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/dataset/{dataset}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("dataset")
    resources:
        **plan.resources("dataset"),
    params:
        settings=plan.settings("dataset"),
        code=plan.code("dataset"),
        versions=plan.versions("dataset"),
        content=plan.content("dataset"),
        inputs=plan.input_options,
        data_dir=plan.data_dir,
    message:
        "dataset {wildcards.dataset}"
    shell:
        "python -m ntkcond.steps.dataset {params.settings:q}"
        " {params.inputs:q} --data-dir {params.data_dir:q} --threads {threads}"
        " --output {output} --log {log}"
