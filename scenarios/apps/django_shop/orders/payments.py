import stripe
from django.conf import settings

stripe.api_key = settings.STRIPE_SECRET_KEY
stripe.max_network_retries = 2


def charge(order):
    """Takes the money. Raises stripe.StripeError."""
    intent = stripe.PaymentIntent.create(
        amount=int(order.total() * 100),
        currency="eur",
        customer=order.customer.stripe_id or None,
        payment_method="pm_card_visa",
        confirm=True,
        automatic_payment_methods={"enabled": True, "allow_redirects": "never"},
        metadata={"order": order.pk},
    )
    return intent.id
