"""What happened, as values: operations on the wire, deliveries, effects, trials. No I/O, and readable from JSON."""
