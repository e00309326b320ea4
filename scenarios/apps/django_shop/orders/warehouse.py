import requests
from django.conf import settings


def announce(order):
    response = requests.post(
        f"{settings.WAREHOUSE_API_URL}/v2/deliveries",
        json={"order": order.pk, "country": order.country},
        headers={"Authorization": f"Token {settings.WAREHOUSE_API_TOKEN}"},
        timeout=15,
    )
    response.raise_for_status()
