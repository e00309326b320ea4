"""A club that bills its members: small Celery jobs, each with one planted bug or without any."""
