# Kernels, their spectra, the closest pair of gradients, sweeps of small kernels, and data sets on the map.


rule kernel:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        keep("results/kernels/{dataset}/{network}/depth{depth}.h5"),
    log:
        "results/logs/kernel/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/kernel/{dataset}/{network}/depth{depth}.tsv"
    # first: they say at once if memory or disk do not suffice, and spectra wait for them
    priority: 1
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("kernel")
    resources:
        mem_mb=memory("kernel"),
        runtime=minutes(240),
        gpu=gpu("kernel"),
    params:
        *made_with("kernel"),
        options=options("kernel"),
        device=device("kernel"),
    message:
        "kernel {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.kernel --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule spectrum:
    input:
        # the kernel's, but of a large one that is not kept: it stays in memory
        unpack(own_files("spectrum")),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/spectra/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/spectrum/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/spectrum/{dataset}/{network}/depth{depth}.tsv"
    wildcard_constraints:
        dataset=project.datasets("spectrum"),
    # before further kernels: with keep_kernels: false, few of them then lie on the disk at once
    priority: 2
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("spectrum")
    resources:
        mem_mb=memory("spectrum"),
        runtime=minutes(240),
        gpu=gpu("spectrum"),
    params:
        *made_with("spectrum"),
        options=options("spectrum"),
        device=device("spectrum"),
    message:
        "spectrum {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.spectrum --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule closest_pair:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/angles/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/closest_pair/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/closest_pair/{dataset}/{network}/depth{depth}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("closest_pair")
    resources:
        mem_mb=memory("closest_pair"),
        runtime=minutes(240),
        gpu=gpu("closest_pair"),
    params:
        *made_with("closest_pair"),
        options=options("closest_pair"),
        device=device("closest_pair"),
    message:
        "closest_pair {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.closest_pair --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule sweep:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/sweeps/{sweep}/{dataset}/{network}.h5",
    log:
        "results/logs/sweep/{sweep}/{dataset}/{network}.log",
    benchmark:
        "results/benchmarks/sweep/{sweep}/{dataset}/{network}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("sweep")
    resources:
        mem_mb=memory("sweep"),
        runtime=minutes(240),
        gpu=gpu("sweep"),
    params:
        *made_with("sweep"),
        options=options("sweep"),
        device=device("sweep"),
    message:
        "sweep {wildcards.sweep} {wildcards.dataset} {wildcards.network}"
    shell:
        "python -m ntkcond.steps.sweep --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads} --output {output} --log {log}"


rule variant:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/variants/{dataset}.h5",
    log:
        "results/logs/variant/{dataset}.log",
    benchmark:
        "results/benchmarks/variant/{dataset}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("variant")
    resources:
        mem_mb=memory("variant"),
        runtime=minutes(60),
    params:
        *made_with("variant"),
        options=options("variant"),
    message:
        "variant {wildcards.dataset}"
    shell:
        "python -m ntkcond.steps.variant --dataset {input.dataset} {params.options:q}"
        " --threads {threads} --output {output} --log {log}"


rule architecture:
    input:
        # a user's own network
        unpack(own_files("architecture")),
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/architectures/{dataset}/{architecture}.h5",
    log:
        "results/logs/architecture/{dataset}/{architecture}.log",
    benchmark:
        "results/benchmarks/architecture/{dataset}/{architecture}.tsv"
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("architecture")
    resources:
        mem_mb=memory("architecture"),
        runtime=minutes(240),
        gpu=gpu("architecture"),
    params:
        *made_with("architecture"),
        options=options("architecture"),
        device=device("architecture"),
    message:
        "architecture {wildcards.dataset} {wildcards.architecture}"
    shell:
        "python -m ntkcond.steps.architecture --dataset {input.dataset} {params.options:q}"
        " --device {params.device} --threads {threads}"
        " --output {output} --log {log}"
