"""Random numbers and small dense algebra for many chains at once. Imports `core`."""
