"""A run: planned once, compiled, played, measured. Knows agents and testbeds by their protocols."""
