"""What the plan knows of each computing step: a module each, by the step's name."""
