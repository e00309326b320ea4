"""Where the shop finds the world. Everything comes from the environment."""

import os

BROKER_URL = os.environ["BROKER_URL"]
RESULT_URL = os.environ.get("RESULT_URL") or None
"""Where results go: chords need it, and nothing else here."""
DATABASE_URL = os.environ["DATABASE_URL"]
PAYMENTS_URL = os.environ["PAYMENTS_URL"]
ACCOUNTING_URL = os.environ["ACCOUNTING_URL"]
SMTP_HOST = os.environ["SMTP_HOST"]
SMTP_PORT = int(os.environ["SMTP_PORT"])
PDF_FOLDER = os.environ.get("PDF_FOLDER", "pdf")

ACKS = os.environ.get("SHOP_ACKS", "late")
"""`late`: a job is settled when it is done. `early`: Celery's default, a job is settled when a worker takes it."""

TIMEOUT = 10
"""Seconds that any call to another system may take."""
