# From samples to tables: NTKs, their spectra, the closest pairs of gradients.

FIG2 = config["figures"]["fig2"]
KERNEL = "results/kernels/{dataset}/{activation}/depth{depth}.h5"


def network_settings(wildcards, *keys):
    """The part of the config that a job depends on, beside its wildcards."""
    own = settings.experiment(config, wildcards.dataset)
    return {key: own[key] for key in keys}


rule kernel:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        KERNEL if config["keep_kernels"] else temp(KERNEL),
    log:
        "results/logs/kernel/{dataset}/{activation}/depth{depth}.log",
    threads: lambda wildcards: threads_for(block_of(wildcards))
    resources:
        mem_mb=megabytes_for("kernel"),
        runtime=minutes_for("kernel"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: made_by(
            network_settings(wildcards, "seeds", "width", "block"), "ntkcond.steps.kernel"
        ),
        options=lambda wildcards: options(network_settings(wildcards, "seeds", "width", "block")),
    message:
        "NTK of {wildcards.dataset}, {wildcards.activation}, depth {wildcards.depth}"
    shell:
        "{PYTHON} -m ntkcond.steps.kernel --dataset {input.dataset}"
        " --activation {wildcards.activation} --depth {wildcards.depth} {params.options}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule spectrum:
    input:
        dataset="results/datasets/{dataset}.h5",
        kernel=KERNEL,
    output:
        "results/spectra/{dataset}/{activation}/depth{depth}.h5",
    log:
        "results/logs/spectrum/{dataset}/{activation}/depth{depth}.log",
    # before further kernels: with keep_kernels: false, few of them then lie on the disk at once
    priority: 1
    threads: lambda wildcards: threads_for(block_of(wildcards))
    resources:
        mem_mb=megabytes_for("spectrum"),
        runtime=minutes_for("spectrum"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: made_by(
            network_settings(wildcards, "seeds", "width"), "ntkcond.steps.spectrum"
        ),
        options=lambda wildcards: options(network_settings(wildcards, "seeds", "width")),
    message:
        "eigenvalues of {wildcards.dataset}, {wildcards.activation}, depth {wildcards.depth}"
    shell:
        "{PYTHON} -m ntkcond.steps.spectrum --dataset {input.dataset} --kernel {input.kernel}"
        " --activation {wildcards.activation} --depth {wildcards.depth} {params.options}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule angle:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/angles/{dataset}/{activation}/depth{depth}.h5",
    log:
        "results/logs/angle/{dataset}/{activation}/depth{depth}.log",
    threads: lambda wildcards: threads_for(settings.sample_count(config, wildcards.dataset))
    resources:
        mem_mb=megabytes_for("angle"),
        runtime=minutes_for("angle"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: made_by(
            network_settings(wildcards, "seeds", "width"), "ntkcond.steps.angle"
        ),
        options=lambda wildcards: options(network_settings(wildcards, "seeds", "width")),
    message:
        "closest pair of {wildcards.dataset}, {wildcards.activation}, depth {wildcards.depth}"
    shell:
        "{PYTHON} -m ntkcond.steps.angle --dataset {input.dataset}"
        " --activation {wildcards.activation} --depth {wildcards.depth} {params.options}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule conditioning:
    input:
        [every(rules.spectrum.output[0], dataset) for dataset in FIG2],
    output:
        "results/conditioning.csv",
    log:
        "results/logs/conditioning.log",
    params:
        made_by=made_by({}, "ntkcond.steps.conditioning"),
    message:
        "table of condition numbers"
    shell:
        "{PYTHON} -m ntkcond.steps.conditioning --spectra {input} --output {output} --log {log}"


rule angles:
    input:
        [every(rules.angle.output[0], dataset) for dataset in FIG2],
    output:
        "results/angles.csv",
    log:
        "results/logs/angles.log",
    params:
        made_by=made_by({}, "ntkcond.steps.angles"),
    message:
        "table of angles"
    shell:
        "{PYTHON} -m ntkcond.steps.angles --angles {input} --output {output} --log {log}"
