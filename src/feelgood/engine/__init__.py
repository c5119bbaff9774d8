"""A run: planned once, compiled, played, measured; and the one schema of its results.

Knows agents and testbeds by their protocols. Imports no room above it; `core.lookup` reaches those.
"""
