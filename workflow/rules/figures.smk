# The artefacts: a figure as .pdf and .png, and the numbers drawn in it as .csv.

# So that the figure says all that it was made with.
FIG2_SETTINGS = {
    name: {**dataset_options(name), **settings.experiment(config, name)} for name in FIG2
}


rule fig1:
    output:
        reported(*multiext("results/fig1", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig1.log",
    benchmark:
        "results/benchmarks/fig1.tsv"
    params:
        made_by=made_by(config["theory"], "ntkcond.steps.fig1"),
        options=options(config["theory"]),
    message:
        "figure 1"
    shell:
        "{PYTHON} -m ntkcond.steps.fig1 {params.options}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig2:
    input:
        conditioning="results/conditioning.csv",
        angles="results/angles.csv",
    output:
        reported(*multiext("results/fig2", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig2.log",
    benchmark:
        "results/benchmarks/fig2.tsv"
    params:
        made_by=made_by(
            FIG2_SETTINGS,
            "ntkcond.steps.fig2",
            inputs={"conditioning": conditioning_made_by(), "angles": angles_made_by()},
        ),
    message:
        "figure 2"
    shell:
        "{PYTHON} -m ntkcond.steps.fig2 --conditioning {input.conditioning} --angles {input.angles}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"


rule fig4:
    output:
        reported(*multiext("results/fig4", ".pdf", ".png", ".csv")),
    log:
        "results/logs/fig4.log",
    benchmark:
        "results/benchmarks/fig4.tsv"
    params:
        made_by=made_by({}, "ntkcond.steps.fig4"),
    message:
        "figure 4"
    shell:
        "{PYTHON} -m ntkcond.steps.fig4"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"
