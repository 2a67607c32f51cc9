# The artefacts: a figure as .pdf and .png, and the numbers drawn in it as .csv.


rule fig1:
    output:
        reported(*multiext("results/fig1", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig1.log",
    benchmark:
        "results/benchmarks/fig1.tsv"
    params:
        made_by=fig1_made_by(),
        options=options({"depths": config["theory"]["depths"]}),
    message:
        "figure 1"
    shell:
        "{PYTHON} -m ntkcond.steps.fig1 {params.options}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig2:
    input:
        conditioning="results/conditioning.csv",
        angles="results/angles.csv",
        infinite=[SWEEP.format(**of) for of in in_sweep("infinite")],
    output:
        reported(*multiext("results/fig2", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig2.log",
    benchmark:
        "results/benchmarks/fig2.tsv"
    params:
        made_by=lambda wildcards: fig2_made_by(),
    message:
        "figure 2"
    shell:
        "{PYTHON} -m ntkcond.steps.fig2 --conditioning {input.conditioning} --angles {input.angles}"
        " --infinite {input.infinite}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig3:
    input:
        "results/training.csv",
    output:
        reported(*multiext("results/fig3", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig3.log",
    benchmark:
        "results/benchmarks/fig3.tsv"
    params:
        made_by=lambda wildcards: fig3_made_by(),
        options=lambda wildcards: options(rate_for()),
    message:
        "figure 3"
    shell:
        "{PYTHON} -m ntkcond.steps.fig3 --training {input} {params.options}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig4:
    output:
        reported(*multiext("results/fig4", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig4.log",
    benchmark:
        "results/benchmarks/fig4.tsv"
    params:
        made_by=fig4_made_by(),
    message:
        "figure 4"
    shell:
        "{PYTHON} -m ntkcond.steps.fig4"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig_activations:
    output:
        reported(*multiext("results/fig_activations", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_activations.log",
    benchmark:
        "results/benchmarks/fig_activations.tsv"
    params:
        made_by=fig_activations_made_by(),
        options=options(activation_theory()),
    message:
        "figure of other activations at infinite width"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_activations {params.options}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig_weight_scale:
    output:
        reported(*multiext("results/fig_weight_scale", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_weight_scale.log",
    benchmark:
        "results/benchmarks/fig_weight_scale.tsv"
    params:
        made_by=fig_weight_scale_made_by(),
    message:
        "figure of weight scales"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_weight_scale"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig_infinite_depth:
    output:
        reported(*multiext("results/fig_infinite_depth", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig_infinite_depth.log",
    benchmark:
        "results/benchmarks/fig_infinite_depth.tsv"
    params:
        made_by=fig_infinite_depth_made_by(),
    message:
        "figure of infinite depth"
    shell:
        "{PYTHON} -m ntkcond.steps.fig_infinite_depth"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"
