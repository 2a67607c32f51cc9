# The workflow is in workflow/Snakefile; people and Snakemake look for it here, too.


include: "workflow/Snakefile"


# An included file cannot set the default target.
rule default:
    default_target: True
    input:
        rules.all.input,
    localrule: True
