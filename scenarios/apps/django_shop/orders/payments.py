import requests
from django.conf import settings


def charge(order):
    """Takes the money. Raises requests.RequestException."""
    response = requests.post(
        f"{settings.PAYMENTS_API_URL}/v1/charges",
        json={
            "amount": int(order.total() * 100),
            "currency": "eur",
            "reference": f"order-{order.pk}",
        },
        headers={"Authorization": f"Bearer {settings.PAYMENTS_API_KEY}"},
        timeout=15,
    )
    response.raise_for_status()
    return response.json()["id"]
