"""From a history to a verdict with its evidence. Pure: no I/O, no clock, no randomness."""
