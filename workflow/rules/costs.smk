# What each artefact cost.

RECORDS = "results/benchmarks"
# The rules that an artefact was made by, in their order.
MADE_WITH = {
    "fig1": [rules.fig1],
    "fig2": [
        rules.dataset,
        rules.kernel,
        rules.spectrum,
        rules.angle,
        rules.conditioning,
        rules.angles,
        rules.fig2,
    ],
    "fig4": [rules.fig4],
}


def artefact_options(wildcards):
    """Each artefact's CSV, and where the jobs that made it have their records."""
    records = {
        artefact: ",".join(os.path.relpath(each.benchmark, RECORDS) for each in its_rules)
        for artefact, its_rules in MADE_WITH.items()
    }
    return shlex.join(f"--artefact=results/{name}.csv={paths}" for name, paths in records.items())


# The records are no inputs: a lost one is no reason to compute a kernel again.
rule costs:
    input:
        expand("results/{artefact}.csv", artefact=MADE_WITH),
    output:
        reported("results/costs.csv"),
    log:
        "results/logs/costs.log",
    params:
        made_by=made_by({}, "ntkcond.steps.costs"),
        options=artefact_options,
    message:
        "table of costs"
    shell:
        "{PYTHON} -m ntkcond.steps.costs {params.options} --records {RECORDS}"
        " --output {output} --log {log}"
