"""One module an artefact: `table` gives the numbers drawn, `draw` a figure from them alone."""
