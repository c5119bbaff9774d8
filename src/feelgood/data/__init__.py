"""The real datasets: where each comes from, its check sum, its arrays. Imports `core`."""
