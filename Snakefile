# ntkcond: the paper's artefacts as targets.
#
#   snakemake -j2                      everything the config asks for
#   snakemake -j2 results/fig2.pdf     one artefact
#
# An artefact, its rule (workflow/rules), its step (src/ntkcond/steps) and, for a figure, its module
# (src/ntkcond/figures) have one name.


configfile: f"{workflow.basedir}/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/made_by.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/kernels.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/sweeps.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/costs.smk"
include: "workflow/rules/unrecorded.smk"


FIGURES = [
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig_activations",
    "fig_activations_ntk",
    "fig_infinite_depth",
    "fig_weight_scale",
    "fig_width",
    "fig_samples",
    "fig_descent",
]
TABLES = ["table_epochs", "table_generalization", "claims"]


localrules:
    all,
    download,
    corpus,
    conditioning,
    angles,
    fig1,
    fig2,
    fig3,
    fig4,
    fig_activations,
    fig_activations_ntk,
    fig_infinite_depth,
    fig_weight_scale,
    fig_width,
    fig_samples,
    fig_descent,
    training,
    table_epochs,
    table_generalization,
    claims,
    costs,


rule all:
    default_target: True
    input:
        expand("results/{figure}.{suffix}", figure=FIGURES, suffix=["pdf", "png", "csv"]),
        expand("results/{table}.{suffix}", table=TABLES, suffix=["csv", "md"]),
        "results/costs.csv",


onstart:
    refuse_a_second_run()
    refuse_what_cannot_fit()
