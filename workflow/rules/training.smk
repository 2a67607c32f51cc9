# Networks that are trained: by SGD, by gradient descent, and for the speed of training.


rule sgd:
    input:
        plan.not_stale("sgd"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/training/{dataset}/depth{depth}.h5",
    log:
        "results/logs/sgd/{dataset}/depth{depth}.log",
    benchmark:
        "results/benchmarks/sgd/{dataset}/depth{depth}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("sgd")
    resources:
        **plan.resources("sgd"),
    params:
        settings=plan.settings("sgd"),
        code=plan.code("sgd"),
        versions=plan.versions("sgd"),
        checkpoint_minutes=plan.checkpoint_minutes,
        device=plan.device,
    message:
        "sgd {wildcards.dataset} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.sgd --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} --checkpoint-minutes {params.checkpoint_minutes} --threads {threads}"
        " --output {output} --log {log}"


rule descent:
    input:
        plan.not_stale("descent"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/descent/{dataset}/width{width}.h5",
    log:
        "results/logs/descent/{dataset}/width{width}.log",
    benchmark:
        "results/benchmarks/descent/{dataset}/width{width}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("descent")
    resources:
        **plan.resources("descent"),
    params:
        settings=plan.settings("descent"),
        code=plan.code("descent"),
        versions=plan.versions("descent"),
        device=plan.device,
    message:
        "descent {wildcards.dataset} width{wildcards.width}"
    shell:
        "python -m ntkcond.steps.descent --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule speed:
    input:
        plan.not_stale("speed"),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/speed/{dataset}/{loss}/width{width}.h5",
    log:
        "results/logs/speed/{dataset}/{loss}/width{width}.log",
    benchmark:
        "results/benchmarks/speed/{dataset}/{loss}/width{width}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: plan.threads("speed")
    resources:
        **plan.resources("speed"),
    params:
        settings=plan.settings("speed"),
        code=plan.code("speed"),
        versions=plan.versions("speed"),
        device=plan.device,
    message:
        "speed {wildcards.dataset} {wildcards.loss} width{wildcards.width}"
    shell:
        "python -m ntkcond.steps.speed --dataset {input.dataset} {params.settings:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"
