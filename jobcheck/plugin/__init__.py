"""What stands behind the pytest plugin's hooks; loaded when a test explores."""
