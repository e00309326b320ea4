from app import create_app
from invenio_mail import tasks  # noqa: F401

app = create_app()
celery = app.extensions["flask-celeryext"].celery
