"""Observers: stand-ins for the world outside a worker, which write down every effect that reaches them."""
