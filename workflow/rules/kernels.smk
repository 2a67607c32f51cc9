# From samples to tables: NTKs, their spectra, the closest pairs of gradients.


rule kernel:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        KERNEL if config["keep_kernels"] else temp(KERNEL),
    log:
        "results/logs/kernel/{dataset}/{activation}/depth{depth}.log",
    benchmark:
        "results/benchmarks/kernel/{dataset}/{activation}/depth{depth}.tsv"
    threads: lambda wildcards: threads_for(block_of(wildcards))
    resources:
        mem_mb=megabytes_for("kernel"),
        runtime=minutes_for("kernel"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: kernel_made_by(**wildcards),
        options=lambda wildcards: options(kernel_made_by(**wildcards)["settings"]),
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
        SPECTRUM,
    log:
        "results/logs/spectrum/{dataset}/{activation}/depth{depth}.log",
    benchmark:
        "results/benchmarks/spectrum/{dataset}/{activation}/depth{depth}.tsv"
    # before further kernels: with keep_kernels: false, few of them then lie on the disk at once
    priority: 1
    threads: lambda wildcards: threads_for(block_of(wildcards))
    resources:
        mem_mb=megabytes_for("spectrum"),
        runtime=minutes_for("spectrum"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: spectrum_made_by(**wildcards),
        options=lambda wildcards: options(spectrum_made_by(**wildcards)["settings"]),
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
        ANGLE,
    log:
        "results/logs/angle/{dataset}/{activation}/depth{depth}.log",
    benchmark:
        "results/benchmarks/angle/{dataset}/{activation}/depth{depth}.tsv"
    threads: lambda wildcards: threads_for(settings.sample_count(config, wildcards.dataset))
    resources:
        mem_mb=megabytes_for("angle"),
        runtime=minutes_for("angle"),
        gpu=gpus,
    params:
        made_by=lambda wildcards: angle_made_by(**wildcards),
        options=lambda wildcards: options(angle_made_by(**wildcards)["settings"]),
    message:
        "closest pair of {wildcards.dataset}, {wildcards.activation}, depth {wildcards.depth}"
    shell:
        "{PYTHON} -m ntkcond.steps.angle --dataset {input.dataset}"
        " --activation {wildcards.activation} --depth {wildcards.depth} {params.options}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule conditioning:
    input:
        [SPECTRUM.format(**of) for of in in_fig2()],
    output:
        reported("results/conditioning.csv"),
    log:
        "results/logs/conditioning.log",
    benchmark:
        "results/benchmarks/conditioning.tsv"
    params:
        made_by=lambda wildcards: conditioning_made_by(),
    message:
        "table of condition numbers"
    shell:
        "{PYTHON} -m ntkcond.steps.conditioning --spectra {input} --output {output} --log {log}"
        " --made-by {params.made_by:q}"


rule angles:
    input:
        [ANGLE.format(**of) for of in in_fig2()],
    output:
        reported("results/angles.csv"),
    log:
        "results/logs/angles.log",
    benchmark:
        "results/benchmarks/angles.tsv"
    params:
        made_by=lambda wildcards: angles_made_by(),
    message:
        "table of angles"
    shell:
        "{PYTHON} -m ntkcond.steps.angles --angles {input} --output {output} --log {log}"
        " --made-by {params.made_by:q}"
