"""Settings: of the config, of a job, of a command line, and what a step says of itself by them."""
