"""Imported by an agent before the first function of the user's: models can be imported from then on."""

import django

django.setup()
