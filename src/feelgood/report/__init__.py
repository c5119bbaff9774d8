"""Charts, tables and the page about results. Imports every room but `api` and `cli`."""
