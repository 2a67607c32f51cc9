

rule gradient_norm:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/gradient_norms/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/gradient_norm/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/gradient_norm/{dataset}/{network}/depth{depth}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("gradient_norm")
    resources:
        mem_mb=memory("gradient_norm"),
        runtime=minutes(60),
        gpu=gpu("gradient_norm"),
    params:
        *made_with("gradient_norm"),
        options=options("gradient_norm"),
        device=device("gradient_norm"),
    message:
        "gradient_norm {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.gradient_norm --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads}"
        " --output {output} --log {log}"
