"""A bandit for a service: it decides, learns late, and survives. Imports what is below."""
