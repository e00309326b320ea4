from django.contrib import admin

from .models import Product, ShippingRate

admin.site.register(Product)
admin.site.register(ShippingRate)
