"""What the Snakefile reads: the config, its jobs, and whether a result is up to date."""
