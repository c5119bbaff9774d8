"""Statistics of arrays: tests, intervals, ranks, effective sample sizes. Imports only `core`."""
