from accounts.models import User
from django.db import transaction

from .models import Order, OrderLine
from .tasks import charge_order


@transaction.atomic
def place_order(customer, basket, country="DE"):
    """`basket`: quantities by product."""
    order = Order.objects.create(customer=customer, country=country)
    for product, quantity in basket.items():
        OrderLine.objects.create(order=order, product=product, price=product.price, quantity=quantity)
    transaction.on_commit(lambda: charge_order.delay(order.pk))
    return order


@transaction.atomic
def place_phone_order(email, basket, country="DE"):
    """Typed in by the staff. Whoever calls for the first time gets an account."""
    customer, _ = User.objects.get_or_create(email=email, defaults={"username": email})
    order = Order.objects.create(customer=customer, country=country)
    for product, quantity in basket.items():
        OrderLine.objects.create(order=order, product=product, price=product.price, quantity=quantity)
    charge_order.delay(order.pk)
    return order
