# Small kernels made and judged in memory, over activations, widths and n; and descent by them.


rule sweep:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        SWEEP,
    log:
        "results/logs/sweep/{sweep}/{dataset}/{activation}.log",
    benchmark:
        "results/benchmarks/sweep/{sweep}/{dataset}/{activation}.tsv"
    threads: sweep_threads
    resources:
        mem_mb=sweep_megabytes,
        runtime=sweep_minutes,
        gpu=gpus,
    params:
        made_by=lambda wildcards: sweep_made_by(**wildcards),
        options=lambda wildcards: options(sweep_made_by(**wildcards)["settings"]),
    message:
        "sweep over {wildcards.sweep} of {wildcards.dataset}, {wildcards.activation}"
    shell:
        "{PYTHON} -m ntkcond.steps.sweep --dataset {input.dataset}"
        " --activation {wildcards.activation} {params.options}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule fig_activations_ntk:
    input:
        [SWEEP.format(**of) for of in in_sweep("activations")],
    output:
        reported(*multiext("results/fig_activations_ntk", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_activations_ntk.log",
    benchmark:
        "results/benchmarks/fig_activations_ntk.tsv"
    params:
        made_by=lambda wildcards: sweep_figure_made_by("activations"),
    message:
        "figure of all activations"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_activations_ntk --sweeps {input}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig_width:
    input:
        [SWEEP.format(**of) for of in in_sweep("width")],
    output:
        reported(*multiext("results/fig_width", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_width.log",
    benchmark:
        "results/benchmarks/fig_width.tsv"
    params:
        made_by=lambda wildcards: sweep_figure_made_by("width"),
    message:
        "figure of widths"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_width --sweeps {input}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig_samples:
    input:
        [SWEEP.format(**of) for of in in_sweep("samples")],
    output:
        reported(*multiext("results/fig_samples", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_samples.log",
    benchmark:
        "results/benchmarks/fig_samples.tsv"
    params:
        made_by=lambda wildcards: sweep_figure_made_by("samples"),
    message:
        "figure of n"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_samples --sweeps {input}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule descent:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        DESCENT,
    log:
        "results/logs/descent/{dataset}.log",
    benchmark:
        "results/benchmarks/descent/{dataset}.tsv"
    resources:
        mem_mb=megabytes_for("kernel"),
        runtime=descent_minutes,
        gpu=gpus,
    params:
        made_by=lambda wildcards: descent_made_by(wildcards.dataset),
        options=lambda wildcards: options(descent_made_by(wildcards.dataset)["settings"]),
    message:
        "gradient descent on {wildcards.dataset}"
    shell:
        "{PYTHON} -m ntkcond.steps.descent --dataset {input.dataset} {params.options}"
        " --device {config[device]} --threads {threads}"
        " --output {output} --log {log} --made-by {params.made_by:q}"


rule fig_descent:
    input:
        expand(DESCENT, dataset=config["figures"]["fig_descent"]),
    output:
        reported(*multiext("results/fig_descent", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_descent.log",
    benchmark:
        "results/benchmarks/fig_descent.tsv"
    params:
        made_by=lambda wildcards: fig_descent_made_by(),
    message:
        "figure of gradient descent"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_descent --descents {input}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"
