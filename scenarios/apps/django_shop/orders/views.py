from catalog.models import Product
from django.contrib.auth.decorators import login_required
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from .models import Order
from .services import place_order


@login_required
@require_POST
def checkout(request):
    basket = request.session.pop("basket", {})
    products = Product.objects.in_bulk([int(pk) for pk in basket])
    order = place_order(request.user, {products[int(pk)]: count for pk, count in basket.items()})
    return redirect("order-detail", order.pk)


@login_required
def order_detail(request, pk):
    order = get_object_or_404(Order, pk=pk, customer=request.user)
    return render(request, "orders/detail.html", {"order": order})
