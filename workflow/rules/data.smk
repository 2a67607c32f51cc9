# Raw files.


# One job for each file: the others stay as they are. `update`, because Snakemake removes outputs
# before a job, and nobody's original may be lost to that.
rule download:
    output:
        update(plan.raw_pattern),
    log:
        "results/logs/download/{raw_file}.log",
    wildcard_constraints:
        raw_file="|".join(plan.raw_files),
    localrule: True
    conda:
        "../envs/ntkcond.yaml"
    params:
        command=plan.download_command(),
    message:
        "download {wildcards.raw_file}"
    shell:
        "{params.command} --output {output:q} --log {log:q}"
