"""Statistics of results: tests, ranks, effective sample sizes. Imports `core`."""
