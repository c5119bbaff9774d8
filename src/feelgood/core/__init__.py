"""What a plug-in author needs: agents, testbeds, settings, registries, errors. Imports no room."""
