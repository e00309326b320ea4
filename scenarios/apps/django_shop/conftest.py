from decimal import Decimal

import pytest


@pytest.fixture
def customer(db, django_user_model):
    return django_user_model.objects.create_user("ada", "ada@example.com", "secret")


@pytest.fixture
def product(db):
    from catalog.models import Product

    return Product.objects.create(title="A book", price=Decimal("12.50"), stock=3)
