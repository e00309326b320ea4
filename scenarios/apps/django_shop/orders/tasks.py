import logging

import requests
import stripe
from celery import shared_task
from core.locks import lock
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from . import payments, warehouse
from .models import Order

logger = logging.getLogger(__name__)


@shared_task(bind=True, autoretry_for=(stripe.APIConnectionError,), retry_backoff=True, max_retries=6)
def charge_order(self, order_id):
    order = Order.objects.select_related("customer").get(pk=order_id)
    if order.status != Order.Status.PENDING:
        logger.info("order %s is %s already", order.pk, order.status)
        return
    with lock(f"charge-{order.pk}") as got:
        if not got:
            return
        order.payment_id = payments.charge(order)
        order.status = Order.Status.PAID
        order.paid_at = timezone.now()
        order.save(update_fields=["payment_id", "status", "paid_at"])
    send_receipt.delay(order.pk)


@shared_task
def send_receipt(order_id):
    order = Order.objects.select_related("customer").get(pk=order_id)
    text = render_to_string("orders/receipt.txt", {"order": order})
    default_storage.save(f"receipts/{order.pk}.txt", ContentFile(text.encode()))
    send_mail(f"Your order {order.pk}", text, None, [order.customer.email])


@shared_task(autoretry_for=(requests.RequestException,), retry_backoff=True)
def announce_to_warehouse(order_id):
    order = Order.objects.get(pk=order_id)
    warehouse.announce(order)
    Order.objects.filter(pk=order.pk).update(status=Order.Status.SHIPPED)


@shared_task
def restock(order_id):
    with transaction.atomic():
        order = Order.objects.select_for_update().get(pk=order_id)
        if order.status == Order.Status.REFUNDED:
            return
        for line in order.lines.select_related("product"):
            line.product.stock += line.quantity
            line.product.save(update_fields=["stock"])
        order.status = Order.Status.REFUNDED
        order.save(update_fields=["status"])
