"""Unit tests of jobcheck/checks."""
