# What `snakemake --report report.html` shows. The captions are in workflow/report, one an artefact.


report: "../report/front.rst"


# The paper's sections as its first version numbers them, arXiv 2305.08813v1; by them the report sorts.
SECTIONS = {
    "fig1": "§4 Better data separation",
    "fig2": "§5 Smaller condition number",
    "conditioning": "§5 Smaller condition number",
    "angles": "§5 Smaller condition number",
    "fig3": "§6 Faster optimization",
    "table_epochs": "§6 Faster optimization",
    "table_generalization": "§6 Faster optimization",
    "fig4": "§A Properties of g",
    "fig_activations": "§∞ Beyond the first version",
    "fig_activations_ntk": "§∞ Beyond the first version",
    "fig_infinite_depth": "§∞ Beyond the first version",
    "fig_weight_scale": "§∞ Beyond the first version",
    "fig_width": "§∞ Beyond the first version",
    "fig_samples": "§∞ Beyond the first version",
    "fig_descent": "§6 Faster optimization",
    "claims": "§ All claims",  # sorted before the sections
    "costs": "∑ Costs",  # sorted after them
}
ARTEFACTS = {
    "fig1": "Figure 1, gradient angle against input angle",
    "fig2": "Figure 2, separation and conditioning against depth",
    "conditioning": "Table, κ of every kernel",
    "angles": "Table, smallest gradient angles",
    "fig3": "Figure 3, training loss against epoch",
    "table_epochs": "Table, epochs to a training loss",
    "table_generalization": "Table 1, test accuracy against depth",
    "fig4": "Figure 4, the function g",
    "fig_activations": "Other activations, gradient angle against input angle",
    "fig_activations_ntk": "Other activations, separation and conditioning against depth",
    "fig_infinite_depth": "Infinite depth, angles and κ on the way to their limits",
    "fig_weight_scale": "Weight scale, gradient angle against input angle",
    "fig_width": "Width, separation and conditioning at finite width",
    "fig_samples": "Samples, κ against n",
    "fig_descent": "Gradient descent against the bound by κ",
    "claims": "Every claim and its verdict",
    "costs": "Table, what each artefact cost",
}
# In an order that the report, which sorts, keeps: the picture first.
FORMS = {
    ".png": "as a picture (PNG)",
    ".pdf": "as vectors (PDF)",
    ".html": "as a page (HTML)",
    ".md": "as text (Markdown)",
    ".csv": "numbers (CSV)",
}


def reported(*paths):
    """The artefact's files, in the report: all under its section and with its caption."""
    return [report_flag(path) for path in paths]


def report_flag(path):
    name, suffix = os.path.splitext(os.path.basename(path))
    return report(
        path,
        caption=f"../report/{name}.rst",
        category=section(name),
        labels={"artefact": ARTEFACTS[name], "file": FORMS[suffix]},
    )


def section(name):
    """A function, which Snakemake (read in 9.27) calls only when it writes a report."""

    def category(wildcards):
        refuse_what_is_out_of_date()
        return SECTIONS[name]

    return category


@functools.cache
def refuse_what_is_out_of_date():
    """Captions say the settings, versions and code of today: not those of older files."""
    stale = sorted({job.rule.name for job in workflow.dag.needrun_jobs() if job.output})
    if stale:
        sys.exit(
            f"ntkcond: no report: {', '.join(stale)} would run again first. Give the same command"
            " without --report, then with it"
        )
