"""Logs of decisions: one schema, an append-only file, and other formats. Imports `core`, no JAX."""
