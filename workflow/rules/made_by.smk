# What each job depends on: the `made_by` of its params (ntkcond.provenance). No rules here.


@functools.cache
def dataset_made_by(dataset):
    """The user's own file enters by its content: Snakemake looks at the content of an input only
    if its date is newer than that of the result, and a copy may well be older."""
    own = dataset_options(dataset)
    for key in own.keys() & {"file", "labels"}:
        own[key] = remembered_sha256(own[key], Path(".snakemake/sha256.json"))
    reader = settings.dataset_module(config, dataset)
    inputs = [corpus_made_by(dataset)] if "subset" in own else []
    return made_by(own, "ntkcond.steps.dataset", reader, of={"dataset": dataset}, inputs=inputs)


@functools.cache
def corpus_made_by(dataset):
    """The files that are there enter by name, size and header."""
    folder = settings.corpus_folder(config, dataset, DATA_DIR)
    own = {"subset": folder.name, "files": corpus_state(folder)}
    return made_by(own, "ntkcond.steps.corpus", of={"dataset": dataset})


def corpus_state(folder):
    """A cluster's job takes the word of the run that submitted it: to look through 28,539 files of a
    shared file system takes long, and meanwhile there may be others."""
    memory = Path(".snakemake/corpora.json")
    known = json.loads(memory.read_text("utf-8")) if memory.is_file() else {}
    if workflow.remote_exec and str(folder) in known:
        return known[str(folder)]
    try:
        found = settings.corpus_state(folder)
    except UserError as error:
        sys.exit(f"ntkcond: {error}")
    if known.get(str(folder)) != found:
        memory.parent.mkdir(exist_ok=True)
        temporary = memory.with_name(f"{memory.name}.{os.getpid()}")
        temporary.write_text(json.dumps({**known, str(folder): found}), "utf-8")
        temporary.replace(memory)
    return found


def network_made_by(step, keys, inputs, dataset, activation, depth):
    """For a step that takes the named settings of a network."""
    own = settings.experiment(config, dataset)
    return made_by(
        {key: own[key] for key in keys},
        f"ntkcond.steps.{step}",
        of={"dataset": dataset, "activation": activation, "depth": int(depth)},
        inputs=inputs,
    )


@functools.cache
def kernel_made_by(**of):
    inputs = [dataset_made_by(of["dataset"])]
    return network_made_by("kernel", ("seeds", "width", "block", "trainable"), inputs, **of)


@functools.cache
def spectrum_made_by(**of):
    inputs = [dataset_made_by(of["dataset"]), kernel_made_by(**of)]
    return network_made_by("spectrum", ("seeds", "width", "trainable"), inputs, **of)


@functools.cache
def angle_made_by(**of):
    inputs = [dataset_made_by(of["dataset"])]
    return network_made_by("angle", ("seeds", "width", "trainable"), inputs, **of)


def in_fig2():
    """The wildcards of all kernels that figure 2 is of."""
    return [
        {"dataset": dataset, "activation": activation, "depth": str(depth)}
        for dataset in FIG2
        for activation in config["activations"]
        for depth in settings.experiment(config, dataset)["depths"]
    ]


@functools.cache
def conditioning_made_by():
    inputs = [spectrum_made_by(**of) for of in in_fig2()]
    return made_by({}, "ntkcond.steps.conditioning", inputs=inputs)


@functools.cache
def angles_made_by():
    inputs = [angle_made_by(**of) for of in in_fig2()]
    return made_by({}, "ntkcond.steps.angles", inputs=inputs)


@functools.cache
def train_made_by(dataset, depth):
    own = settings.training(config, dataset)
    return made_by(
        {key: own[key] for key in settings.TRAINING},
        "ntkcond.steps.train",
        of={"dataset": dataset, "depth": int(depth)},
        inputs=[dataset_made_by(dataset)],
    )


def in_fig3():
    """The wildcards of all training runs that figure 3 and its tables are of."""
    return [
        {"dataset": dataset, "depth": str(depth)}
        for dataset in FIG3
        for depth in settings.training(config, dataset)["depths"]
    ]


@functools.cache
def training_made_by():
    inputs = [train_made_by(**of) for of in in_fig3()]
    return made_by({}, "ntkcond.steps.training", inputs=inputs)


def rate_for():
    return {"rate_for": config["training"]["rate_for"]}


def table_generalization_made_by():
    return made_by(rate_for(), "ntkcond.steps.table_generalization", inputs=[training_made_by()])


def table_epochs_made_by():
    thresholds = sorted(map(float, config["training"]["thresholds"]), reverse=True)
    return made_by(
        {"thresholds": thresholds}, "ntkcond.steps.table_epochs", inputs=[training_made_by()]
    )


def fig3_made_by():
    """All settings, as in figure 2."""
    runs = {name: {**dataset_options(name), **settings.training(config, name)} for name in FIG3}
    own = {**rate_for(), "datasets": runs}
    return made_by(own, "ntkcond.steps.fig3", inputs=[training_made_by()])


def fig1_made_by():
    return made_by({"depths": config["theory"]["depths"]}, "ntkcond.steps.fig1")


def fig2_made_by():
    """All settings, though others used them, so that the figure says what it was made with."""
    return made_by(
        {name: {**dataset_options(name), **settings.experiment(config, name)} for name in FIG2},
        "ntkcond.steps.fig2",
        inputs=[
            conditioning_made_by(),
            angles_made_by(),
            *(sweep_made_by(**of) for of in in_sweep("infinite")),
        ],
    )


def activation_theory():
    own = config["theory"]
    return {"activations": own["activations"], "depths": own["activation_depths"]}


def fig_activations_made_by():
    return made_by(activation_theory(), "ntkcond.steps.fig_activations")


def in_sweep(sweep):
    """The wildcards of the jobs of a sweep."""
    figure, activations = {
        "activations": ("fig_activations_ntk", ACTIVATIONS),
        "width": ("fig_width", [config["sweeps"]["activation"]]),
        "samples": ("fig_samples", [config["sweeps"]["activation"]]),
        "infinite": ("fig2", config["activations"]),
        "first_layer": ("fig2", ["relu"]),
    }[sweep]
    return [
        {"sweep": sweep, "dataset": dataset, "activation": activation}
        for dataset in config["figures"][figure]
        for activation in activations
        if sweep != "infinite" or settings.has_infinite_width(config, dataset, activation)
    ]


@functools.cache
def sweep_made_by(sweep, dataset, activation):
    return made_by(
        settings.sweep(config, sweep, dataset, activation),
        "ntkcond.steps.sweep",
        of={"sweep": sweep, "dataset": dataset, "activation": activation},
        inputs=[dataset_made_by(dataset)],
    )


def sweep_figure_made_by(sweep):
    step = {"activations": "fig_activations_ntk", "width": "fig_width", "samples": "fig_samples"}
    inputs = [sweep_made_by(**of) for of in in_sweep(sweep)]
    own = {
        f"{of['dataset']}, {of['activation']}": made["settings"]
        for of, made in zip(in_sweep(sweep), inputs)
    }
    return made_by(own, f"ntkcond.steps.{step[sweep]}", inputs=inputs)


@functools.cache
def descent_made_by(dataset):
    own = settings.experiment(config, dataset)
    return made_by(
        {**config["descent"], "width": own["width"], "block": own["block"]},
        "ntkcond.steps.descent",
        of={"dataset": dataset},
        inputs=[dataset_made_by(dataset)],
    )


def fig_descent_made_by():
    inputs = [descent_made_by(dataset) for dataset in config["figures"]["fig_descent"]]
    own = {made["of"]["dataset"]: made["settings"] for made in inputs}
    return made_by(own, "ntkcond.steps.fig_descent", inputs=inputs)


def claims_made_by():
    """By all that it judges."""
    evidence = [
        conditioning_made_by(),
        angles_made_by(),
        fig3_made_by(),
        fig_activations_made_by(),
        *map(sweep_figure_made_by, ("activations", "width")),
        fig_infinite_depth_made_by(),
        fig_weight_scale_made_by(),
        fig_descent_made_by(),
        table_epochs_made_by(),
        table_generalization_made_by(),
    ]
    sweeps = [
        sweep_made_by(**of) for sweep in ("first_layer", "infinite") for of in in_sweep(sweep)
    ]
    return made_by({}, "ntkcond.steps.claims", inputs=[*evidence, *sweeps])


def fig_weight_scale_made_by():
    return made_by({}, "ntkcond.steps.fig_weight_scale")


def fig_infinite_depth_made_by():
    return made_by({}, "ntkcond.steps.fig_infinite_depth")


def fig4_made_by():
    return made_by({}, "ntkcond.steps.fig4")


def costs_made_by():
    return made_by({}, "ntkcond.steps.costs")
