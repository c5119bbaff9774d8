"""Tables, charts and the page: they read results and compute no physics."""
