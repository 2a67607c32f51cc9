# Raw files, and results/datasets/{dataset}.h5 from them.

RAW_FILES = {name: source for source, known in SOURCES.items() for name in known.raw_files}

# Not among the rules' params: which server a checked file came from changes no result.
MIRRORS = shlex.join(
    f"--mirror={of['source']}={url}"
    for of in (settings.dataset_settings(config, name) for name in config["datasets"])
    for url in of.get("mirrors", [])
)


# One job for each file: those that are there are let be when another is missing. `update`, because
# Snakemake removes outputs before a job, and nobody's original may be lost to that.
rule download:
    output:
        update(raw_file("{raw_file}")),
    log:
        "results/logs/download/{raw_file}.log",
    wildcard_constraints:
        raw_file="|".join(map(re.escape, RAW_FILES)),
    params:
        source=lambda wildcards: RAW_FILES[wildcards.raw_file],
    message:
        "download {wildcards.raw_file}"
    shell:
        "{PYTHON} -m ntkcond.steps.download --source {params.source}"
        " --raw-file {wildcards.raw_file} {MIRRORS} --output {output:q} --log {log}"


# What a corpus has, from the files' headers. It may come from anywhere, whole or in
# part: its folder is therefore no output, which Snakemake would remove before a job.
rule corpus:
    output:
        CORPUS,
    log:
        "results/logs/corpus/{dataset}.log",
    benchmark:
        "results/benchmarks/corpus/{dataset}.tsv"
    params:
        made_by=lambda wildcards: corpus_made_by(wildcards.dataset),
        subset=lambda wildcards: settings.dataset_settings(config, wildcards.dataset)["subset"],
    message:
        "files of {wildcards.dataset}"
    shell:
        "{PYTHON} -m ntkcond.steps.corpus --subset {params.subset} --data-dir {DATA_DIR:q}"
        " {MIRRORS} --output {output} --log {log} --made-by {params.made_by:q}"


rule dataset:
    input:
        raw_files,
    output:
        "results/datasets/{dataset}.h5",
    log:
        "results/logs/dataset/{dataset}.log",
    benchmark:
        "results/benchmarks/dataset/{dataset}.tsv"
    threads: reading_threads
    resources:
        mem_mb=lambda wildcards, attempt: cluster.megabytes(
            at_sizes(cluster.dataset_need, wildcards), attempt
        ),
        runtime=minutes_for("dataset"),
    params:
        made_by=lambda wildcards: dataset_made_by(wildcards.dataset),
        options=lambda wildcards: reading_options(wildcards.dataset),
    message:
        "samples of {wildcards.dataset}"
    shell:
        "{PYTHON} -m ntkcond.steps.dataset {params.options} --data-dir {DATA_DIR:q}"
        " --threads {threads} --output {output} --log {log} --made-by {params.made_by:q}"
