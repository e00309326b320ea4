"""Unit tests of jobcheck/effects."""
