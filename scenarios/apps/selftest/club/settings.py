"""Where the club finds the world. Everything comes from the environment."""

import os

BROKER_URL = os.environ["BROKER_URL"]
CACHE_URL = os.environ["CACHE_URL"]
DATABASE_URL = os.environ["DATABASE_URL"]
PAYMENTS_URL = os.environ["PAYMENTS_URL"]
SMTP_HOST = os.environ["SMTP_HOST"]
SMTP_PORT = int(os.environ["SMTP_PORT"])
STATEMENTS = os.environ.get("STATEMENTS", "statements")

TIMEOUT = int(os.environ.get("TIMEOUT", "10"))
"""Seconds that any call to another system may take."""
