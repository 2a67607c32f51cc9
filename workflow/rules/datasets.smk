# Raw files, and results/datasets/{dataset}.h5 from them.


def raw_files(wildcards):
    """What a data set is read from: the files that a download fetches, or the user's own."""
    of = settings.dataset_settings(config, wildcards.dataset)
    if "file" in of:
        return in_project(of["file"])
    return [os.path.join(DATA_DIR, name) for name in SOURCES[of["source"]].raw_files]


def dataset_settings(wildcards):
    """What the file depends on. Which server a checked raw file came from is no part of it."""
    of = settings.dataset_settings(config, wildcards.dataset)
    of.pop("mirrors", None)
    if "file" in of:
        of["file"] = in_project(of["file"])
    return of


RAW_FILES = {name: source for source, known in SOURCES.items() for name in known.raw_files}


def download_options(wildcards):
    """The data set that the raw file is of, and mirrors where the config names some for it."""
    source = RAW_FILES[wildcards.raw_file]
    for name in config["datasets"]:
        of = settings.dataset_settings(config, name)
        if of["source"] == source and "mirrors" in of:
            return options({"source": source, "mirrors": of["mirrors"]})
    return options({"source": source})


# One job for each file: those that are there are let be when another is missing. `update`, because
# Snakemake removes outputs before a job, and nobody's original may be lost to that.
rule download:
    output:
        update(os.path.join(DATA_DIR, "{raw_file}")),
    log:
        "results/logs/download/{raw_file}.log",
    wildcard_constraints:
        raw_file="|".join(map(re.escape, RAW_FILES)),
    params:
        options=download_options,
    message:
        "download {wildcards.raw_file}"
    shell:
        "{PYTHON} -m ntkcond.steps.download {params.options} --output {output:q} --log {log}"


rule dataset:
    input:
        raw_files,
    output:
        "results/datasets/{dataset}.h5",
    log:
        "results/logs/dataset/{dataset}.log",
    resources:
        mem_mb=4000,
    params:
        made_by=lambda wildcards: made_by(
            dataset_settings(wildcards),
            "ntkcond.steps.dataset",
            settings.dataset_module(config, wildcards.dataset),
        ),
        options=lambda wildcards: options(dataset_settings(wildcards)),
    message:
        "samples of {wildcards.dataset}"
    shell:
        "{PYTHON} -m ntkcond.steps.dataset {params.options} --data-dir {DATA_DIR:q}"
        " --output {output} --log {log} --made-by {params.made_by:q}"
