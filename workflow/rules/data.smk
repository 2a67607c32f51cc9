# Raw files, and the samples that are made of them.


# One job for each file: the others stay as they are. `update`, because Snakemake removes outputs
# before a job, and nobody's original may be lost to that.
rule download:
    output:
        update(project.raw_pattern),
    log:
        "results/logs/download/{raw_file}.log",
    wildcard_constraints:
        raw_file="|".join(project.raw_files),
    localrule: True
    conda:
        "../envs/ntkcond.yaml"
    params:
        source=project.source_of_raw_file,
        mirrors=mirrors,
    message:
        "download {wildcards.raw_file}"
    shell:
        "python -m ntkcond.steps.download --source {params.source}"
        " --raw-file {wildcards.raw_file} {params.mirrors} --output {output:q} --log {log:q}"


# All that the figures read: snakemake -j4 -k downloads
rule downloads:
    input:
        project.downloads,
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
        *made_with("corpus"),
        options=options("corpus"),
        data_dir=data_dir,
        mirrors=mirrors,
    message:
        "corpus {wildcards.dataset}"
    shell:
        "python -m ntkcond.steps.corpus {params.options:q}"
        " --data-dir {params.data_dir:q} {params.mirrors} --output {output} --log {log}"


rule dataset:
    input:
        # raw files, a user's own, or the list of a corpus
        unpack(own_files("dataset")),
    output:
        "results/datasets/{dataset}.h5",
    log:
        "results/logs/dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/dataset/{dataset}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("dataset")
    resources:
        mem_mb=memory("dataset"),
        runtime=minutes(240),
    params:
        *made_with("dataset"),
        options=options("dataset"),
        data_dir=data_dir,
    message:
        "dataset {wildcards.dataset}"
    shell:
        "python -m ntkcond.steps.dataset {params.options:q}"
        " --data-dir {params.data_dir:q} --threads {threads}"
        " --output {output} --log {log}"
