import pytest
from django.core import mail
from django.urls import reverse

from orders import payments
from orders.models import Order


@pytest.fixture
def charges(monkeypatch):
    made = []

    def charge(order):
        made.append(order.pk)
        return f"ch_{order.pk}"

    monkeypatch.setattr(payments, "charge", charge)
    return made


def test_a_checkout_charges_and_mails(client, customer, product, charges, django_capture_on_commit_callbacks):
    client.force_login(customer)
    session = client.session
    session["basket"] = {str(product.pk): 2}
    session.save()
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(reverse("checkout"))
    order = Order.objects.get()
    assert response["Location"] == reverse("order-detail", args=[order.pk])
    assert order.status == Order.Status.PAID
    assert charges == [order.pk]
    assert mail.outbox[0].to == ["ada@example.com"]


def test_a_phone_order_is_charged_and_makes_an_account(db, product, charges):
    from orders.services import place_phone_order

    order = place_phone_order("bob@example.com", {product: 1})
    order.refresh_from_db()
    assert order.status == Order.Status.PAID
    assert order.customer.username == "bob@example.com"
    assert charges == [order.pk]


def test_an_order_is_charged_once(customer, charges):
    from orders.tasks import charge_order

    order = Order.objects.create(customer=customer)
    charge_order(order.pk)
    charge_order(order.pk)
    assert charges == [order.pk]


def test_restock_puts_the_books_back(customer, product):
    from orders.models import OrderLine
    from orders.tasks import restock

    order = Order.objects.create(customer=customer, status=Order.Status.PAID)
    OrderLine.objects.create(order=order, product=product, price=product.price, quantity=2)
    restock(order.pk)
    restock(order.pk)
    product.refresh_from_db()
    assert product.stock == 5
