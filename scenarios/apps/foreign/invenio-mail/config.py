import os

MAIL_SERVER = os.environ.get("MAIL_SERVER", "localhost")
MAIL_PORT = int(os.environ.get("MAIL_PORT", "25"))
MAIL_DEFAULT_SENDER = "library@example.org"
CELERY_BROKER_URL = os.environ.get("BROKER_URL", "redis://localhost:6379/0")
CELERY_RESULT_BACKEND = os.environ.get("BROKER_URL", "redis://localhost:6379/0")
CELERY_TASK_ACKS_LATE = True
