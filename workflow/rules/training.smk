# From samples to learning curves: SGD, every seed and learning rate of a depth in one job; and
# full-batch gradient descent.


rule sgd:
    input:
        unpack(plan.inputs("sgd")),
    output:
        plan.patterns["sgd"],
    log:
        "results/logs/sgd/{dataset}/depth{depth}.log",
    benchmark:
        "results/benchmarks/sgd/{dataset}/depth{depth}.tsv"
    threads: plan.threads("sgd")
    resources:
        **plan.resources("sgd"),
    params:
        command=plan.command("sgd"),
    message:
        "training on {wildcards.dataset}, depth {wildcards.depth}"
    shell:
        "{params.command} --dataset {input.dataset}"
        " --threads {threads} --output {output} --log {log}"


rule descent:
    input:
        unpack(plan.inputs("descent")),
    output:
        plan.patterns["descent"],
    log:
        "results/logs/descent/{dataset}.log",
    benchmark:
        "results/benchmarks/descent/{dataset}.tsv"
    threads: plan.threads("descent")
    resources:
        **plan.resources("descent"),
    params:
        command=plan.command("descent"),
    message:
        "gradient descent on {wildcards.dataset}"
    shell:
        "{params.command} --dataset {input.dataset}"
        " --threads {threads} --output {output} --log {log}"
