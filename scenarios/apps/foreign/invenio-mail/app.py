from flask import Flask
from flask_celeryext import FlaskCeleryExt
from invenio_mail import InvenioMail


def create_app():
    app = Flask("letters")
    app.config.from_object("config")
    InvenioMail(app)
    FlaskCeleryExt(app)
    return app
