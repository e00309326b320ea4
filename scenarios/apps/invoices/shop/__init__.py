"""A shop that sends invoices: a small Celery application on Redis and PostgreSQL."""
