"""One module a table: `table` gives its numbers, `markdown` the same for people to read."""
