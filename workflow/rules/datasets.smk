# Raw files, and results/datasets/{dataset}.h5 from them.

RAW_FILES = {name: source for source, known in SOURCES.items() for name in known.raw_files}

# Not among the rules' params: which server a checked file came from changes no result.
MIRRORS = shlex.join(
    f"--mirror={of['source']}={url}"
    for of in (settings.dataset_settings(config, name) for name in config["datasets"])
    for url in of.get("mirrors", [])
)


def raw_file(name):
    return os.path.normpath(os.path.join(DATA_DIR, name))


def raw_files(wildcards):
    """What a data set is read from: the files that a download fetches, or the user's own."""
    of = settings.dataset_settings(config, wildcards.dataset)
    if "file" in of:
        return in_project(of["file"])
    return [raw_file(name) for name in SOURCES[of["source"]].raw_files]


def dataset_options(dataset):
    """The data set's settings but for its mirrors: which one it came from does not matter."""
    of = settings.dataset_settings(config, dataset)
    of.pop("mirrors", None)
    if "file" in of:
        of["file"] = in_project(of["file"])
    return of


@functools.cache
def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def dataset_made_by(wildcards):
    """The user's own file enters by its content: Snakemake looks at the content of an input only
    if its date is newer than that of the result, and a copy may well be older."""
    of = dataset_options(wildcards.dataset)
    if "file" in of:
        of["file"] = sha256(of["file"])
    reader = settings.dataset_module(config, wildcards.dataset)
    return made_by(of, "ntkcond.steps.dataset", reader)


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


rule dataset:
    input:
        raw_files,
    output:
        "results/datasets/{dataset}.h5",
    log:
        "results/logs/dataset/{dataset}.log",
    resources:
        mem_mb=lambda wildcards, attempt: cluster.megabytes(
            at_sizes(cluster.dataset_need, wildcards), attempt
        ),
        runtime=minutes_for("dataset"),
    params:
        made_by=dataset_made_by,
        options=lambda wildcards: options(dataset_options(wildcards.dataset)),
    message:
        "samples of {wildcards.dataset}"
    shell:
        "{PYTHON} -m ntkcond.steps.dataset {params.options} --data-dir {DATA_DIR:q}"
        " --output {output} --log {log} --made-by {params.made_by:q}"
