"""Celery on Redis (RabbitMQ follows): adapter, dialect, and the library calls that run in the app's environment."""
