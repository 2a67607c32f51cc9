# Every claim of the paper, judged by the artefacts.


rule claims:
    input:
        tables=[f"results/{name}.csv" for name in EVIDENCE],
        first_layer=[SWEEP.format(**of) for of in in_sweep("first_layer")],
        infinite=[SWEEP.format(**of) for of in in_sweep("infinite")],
    output:
        reported(*multiext("results/claims", ".csv", ".md", ".html")),
    log:
        "results/logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    params:
        made_by=lambda wildcards: claims_made_by(),
    message:
        "table of claims"
    shell:
        "{PYTHON} -m ntkcond.steps.claims --tables {input.tables}"
        " --first-layer {input.first_layer} --infinite {input.infinite}"
        " --output {output[0]} --log {log} --made-by {params.made_by:q}"
