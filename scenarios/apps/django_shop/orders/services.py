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
