"""What the Snakefile reads: config, the graph of jobs, and whether a result is up to date."""
