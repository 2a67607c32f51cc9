"""One module an artefact: SPEC describes it, `table` gives its numbers, `draw` a figure of them."""
