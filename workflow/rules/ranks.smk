# Spectra by MPI ranks: of data sets with `engine: scalapack`, which have no kernel files.


rule scalapack_spectrum:
    input:
        dataset="results/datasets/{dataset}.h5",
    output:
        "results/spectra/{dataset}/{network}/depth{depth}.h5",
    log:
        "results/logs/spectrum/{dataset}/{network}/depth{depth}.log",
    benchmark:
        "results/benchmarks/spectrum/{dataset}/{network}/depth{depth}.tsv"
    wildcard_constraints:
        dataset=project.datasets("scalapack_spectrum"),
    conda:
        "../envs/ntkcond.yaml"
    threads: threads_of("scalapack_spectrum")
    resources:
        mem_mb=memory("scalapack_spectrum"),
        mem_mb_per_cpu=memory("scalapack_spectrum", each=True),
        tasks=ranks("scalapack_spectrum"),
        runtime=minutes(480),
        mpi="mpirun",  # profiles/slurm sets another
    params:
        *made_with("scalapack_spectrum"),
        options=options("scalapack_spectrum"),
    message:
        "scalapack_spectrum {wildcards.dataset} {wildcards.network} depth{wildcards.depth}"
    shell:
        "python -m ntkcond.steps.scalapack_spectrum --dataset {input.dataset} {params.options:q}"
        " --ranks {resources.tasks} --mpi {resources.mpi:q} --threads {threads}"
        " --output {output} --log {log}"
