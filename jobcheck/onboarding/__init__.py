"""The first ten minutes: what `jobcheck init` finds out about an app, and what it writes."""
