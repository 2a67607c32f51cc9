# What each job depends on: the `made_by` of its params (ntkcond.provenance). No rules here.


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def dataset_made_by(dataset):
    """The user's own file enters by its content: Snakemake looks at the content of an input only
    if its date is newer than that of the result, and a copy may well be older."""
    of = dataset_options(dataset)
    if "file" in of:
        of["file"] = sha256_of(of["file"])
    reader = settings.dataset_module(config, dataset)
    return made_by(of, "ntkcond.steps.dataset", reader)


def network_settings(dataset, *keys):
    """The part of the config that a job depends on, beside its wildcards."""
    own = settings.experiment(config, dataset)
    return {key: own[key] for key in keys}


@functools.cache
def kernel_made_by(dataset):
    return made_by(
        network_settings(dataset, "seeds", "width", "block"),
        "ntkcond.steps.kernel",
        inputs={"dataset": dataset_made_by(dataset)},
    )


@functools.cache
def spectrum_made_by(dataset):
    return made_by(
        network_settings(dataset, "seeds", "width"),
        "ntkcond.steps.spectrum",
        inputs={"dataset": dataset_made_by(dataset), "kernel": kernel_made_by(dataset)},
    )


@functools.cache
def angle_made_by(dataset):
    return made_by(
        network_settings(dataset, "seeds", "width"),
        "ntkcond.steps.angle",
        inputs={"dataset": dataset_made_by(dataset)},
    )


@functools.cache
def conditioning_made_by():
    inputs = {path: spectrum_made_by(name) for name in FIG2 for path in every(SPECTRUM, name)}
    return made_by({}, "ntkcond.steps.conditioning", inputs=inputs)


@functools.cache
def angles_made_by():
    inputs = {path: angle_made_by(name) for name in FIG2 for path in every(ANGLE, name)}
    return made_by({}, "ntkcond.steps.angles", inputs=inputs)


def fig1_made_by():
    return made_by(config["theory"], "ntkcond.steps.fig1")


def fig2_made_by():
    """All settings, though others used them, so that the figure says what it was made with."""
    return made_by(
        {name: {**dataset_options(name), **settings.experiment(config, name)} for name in FIG2},
        "ntkcond.steps.fig2",
        inputs={"conditioning": conditioning_made_by(), "angles": angles_made_by()},
    )


def fig4_made_by():
    return made_by({}, "ntkcond.steps.fig4")
