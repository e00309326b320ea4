"""The self-test: bugs and right handlers planted in a sample app, each with what must be found, as data."""
