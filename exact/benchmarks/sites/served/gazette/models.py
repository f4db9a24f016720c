"""The pages and snippets of the newspaper."""

from django.db import models
from wagtail.admin.panels import FieldPanel
from wagtail.models import Page
from wagtail.search import index
from wagtail.snippets.models import register_snippet


class HomePage(Page):
    intro = models.TextField(blank=True)
    content_panels = [*Page.content_panels, FieldPanel("intro")]
    template = "gazette/home.html"


class SectionPage(Page):
    intro = models.TextField(blank=True)
    content_panels = [*Page.content_panels, FieldPanel("intro")]
    template = "gazette/section.html"


class ArticlePage(Page):
    date = models.DateField("Date")
    author = models.CharField(max_length=80)
    summary = models.CharField(max_length=250, blank=True)
    body = models.TextField(blank=True)
    content_panels = [*Page.content_panels, FieldPanel("date"), FieldPanel("author"), FieldPanel("summary"), FieldPanel("body")]
    search_fields = [*Page.search_fields, index.SearchField("body"), index.SearchField("summary")]
    template = "gazette/article.html"


class EventPage(Page):
    date = models.DateField("Date")
    venue = models.CharField(max_length=80)
    price = models.CharField(max_length=40, blank=True)
    body = models.TextField(blank=True)
    content_panels = [*Page.content_panels, FieldPanel("date"), FieldPanel("venue"), FieldPanel("price"), FieldPanel("body")]
    search_fields = [*Page.search_fields, index.SearchField("body")]
    template = "gazette/event.html"


@register_snippet
class Notice(models.Model):
    text = models.CharField(max_length=200)
    level = models.CharField(max_length=20, choices=[("info", "Info"), ("warning", "Warning"), ("danger", "Danger")], default="info")
    shown = models.BooleanField(default=True)
    panels = [FieldPanel("text"), FieldPanel("level"), FieldPanel("shown")]

    class Meta:
        ordering = ["text"]

    def __str__(self):
        return self.text


@register_snippet
class Contact(models.Model):
    name = models.CharField(max_length=80)
    post = models.CharField(max_length=80)
    phone = models.CharField(max_length=40, blank=True)
    panels = [FieldPanel("name"), FieldPanel("post"), FieldPanel("phone")]

    class Meta:
        ordering = ["name"]

    def __str__(self):
        return self.name
