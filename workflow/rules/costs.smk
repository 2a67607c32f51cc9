# What each artefact cost.

RECORDS = "results/benchmarks"
# The rules that an artefact was made by, in their order.
MADE_WITH = {
    "fig1": [rules.fig1],
    "fig2": [
        *expand(rules.corpus.benchmark, dataset=from_corpora(FIG2)),
        rules.dataset,
        rules.kernel,
        rules.spectrum,
        rules.angle,
        *sweep_records("infinite", rules.sweep),
        rules.conditioning,
        rules.angles,
        rules.fig2,
    ],
    "fig3": [
        *expand(rules.corpus.benchmark, dataset=from_corpora(FIG3)),
        rules.dataset,
        rules.train,
        rules.training,
        rules.fig3,
    ],
    "fig4": [rules.fig4],
    "fig_activations": [rules.fig_activations],
    "fig_activations_ntk": [
        rules.dataset,
        *sweep_records("activations", rules.sweep),
        rules.fig_activations_ntk,
    ],
    "fig_infinite_depth": [rules.fig_infinite_depth],
    "fig_weight_scale": [rules.fig_weight_scale],
    "fig_width": [rules.dataset, *sweep_records("width", rules.sweep), rules.fig_width],
    "fig_descent": [rules.dataset, rules.descent, rules.fig_descent],
    "claims": [
        *expand(rules.dataset.benchmark, dataset=FIG2),
        *(rules.sweep.benchmark.format(**of) for of in in_sweep("first_layer")),
        rules.claims,
    ],
    "fig_samples": [rules.dataset, *sweep_records("samples", rules.sweep), rules.fig_samples],
}


# The records are no inputs: a lost one is no reason to compute a kernel again.
rule costs:
    input:
        expand("results/{artefact}.csv", artefact=MADE_WITH),
    output:
        reported("results/costs.csv"),
    log:
        "results/logs/costs.log",
    params:
        made_by=costs_made_by(),
        options=lambda wildcards: artefact_options(MADE_WITH, RECORDS),
    message:
        "table of costs"
    shell:
        "{PYTHON} -m ntkcond.steps.costs {params.options}" " --output {output} --log {log}"
