"""Hooks of the pytest plugin; everything else is imported when a test asks for it."""
