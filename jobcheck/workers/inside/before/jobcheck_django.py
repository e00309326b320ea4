"""Imported by an agent before the first function of the user's: models can be imported from then on."""

import django

django.setup()


def before_fork():
    """Apps that query the database while they are imported have open connections: each fork makes its own."""
    from django.db import connections

    connections.close_all()
