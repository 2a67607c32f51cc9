# Networks that are trained: by SGD, by gradient descent, and for the speed of training.


rule sgd:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/training/{dataset}/depth{depth}/seed{seed}.h5",
    log:
        "results/logs/sgd/{dataset}/depth{depth}/seed{seed}.log",
    benchmark:
        "results/benchmarks/sgd/{dataset}/depth{depth}/seed{seed}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("sgd")
    resources:
        mem_mb=memory("sgd"),
        runtime=minutes(1440),
        gpu=gpu("sgd"),
    params:
        *made_with("sgd"),
        options=options("sgd"),
        checkpoint_minutes=project.checkpoint_minutes,
        device=device("sgd"),
    message:
        "sgd {wildcards.dataset} depth{wildcards.depth} seed{wildcards.seed}"
    shell:
        "python -m ntkcond.steps.sgd --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --checkpoint-minutes {params.checkpoint_minutes} --threads {threads}"
        " --output {output} --log {log}"


rule descent:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/descent/{dataset}/width{width}.h5",
    log:
        "results/logs/descent/{dataset}/width{width}.log",
    benchmark:
        "results/benchmarks/descent/{dataset}/width{width}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("descent")
    resources:
        mem_mb=memory("descent"),
        runtime=minutes(240),
        gpu=gpu("descent"),
    params:
        *made_with("descent"),
        options=options("descent"),
        device=device("descent"),
    message:
        "descent {wildcards.dataset} width{wildcards.width}"
    shell:
        "python -m ntkcond.steps.descent --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule speed:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/speed/{dataset}/{loss}/width{width}.h5",
    log:
        "results/logs/speed/{dataset}/{loss}/width{width}.log",
    benchmark:
        "results/benchmarks/speed/{dataset}/{loss}/width{width}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("speed")
    resources:
        mem_mb=memory("speed"),
        runtime=minutes(480),
        gpu=gpu("speed"),
    params:
        *made_with("speed"),
        options=options("speed"),
        device=device("speed"),
    message:
        "speed {wildcards.dataset} {wildcards.loss} width{wildcards.width}"
    shell:
        "python -m ntkcond.steps.speed --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"
