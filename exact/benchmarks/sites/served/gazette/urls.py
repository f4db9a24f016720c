"""The addresses of the newspaper."""

from django.conf import settings
from django.shortcuts import render
from django.urls import include, path, re_path
from django.views.static import serve
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as admin_urls

from gazette.models import ArticlePage, Contact, Notice


def contacts(request):
    return render(request, "gazette/contacts.html", {"contacts": Contact.objects.all()})


def notices(request):
    return render(request, "gazette/notices.html", {"notices": Notice.objects.filter(shown=True)})


def search(request):
    query = request.GET.get("q", "")
    found = ArticlePage.objects.live().filter(body__icontains=query).order_by("title") if query else []
    return render(request, "gazette/search.html", {"query": query, "found": found})


urlpatterns = [
    path("admin/", include(admin_urls)),
    path("contacts/", contacts),
    path("notices/", notices),
    path("search/", search),
    re_path(r"^static/(?P<path>.*)$", serve, {"document_root": settings.STATIC_ROOT}),
    path("", include(wagtail_urls)),
]
