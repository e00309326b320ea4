import os

from .base import *  # noqa: F403
from .base import DATABASES

SECRET_KEY = os.environ["SECRET_KEY"]
DATABASES["default"]["CONN_MAX_AGE"] = 60
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": os.environ.get("LOG_LEVEL", "INFO")},
}
