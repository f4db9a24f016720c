"""A Wagtail with a newspaper and three people: `build` makes it, always the same, `application` serves it, `restore` restores it."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path

from wagtail_data import ARTICLES, CONTACTS, DRAFTS, EVENTS, NOTICES, REDIRECTS, SECTIONS, USERS, WORD

KEPT = ""
"""Table of log-ins: none, because they are in signed cookies."""
BEGIN = datetime(2024, 1, 5, 9, 0, tzinfo=UTC)


def configured(folder: Path) -> None:
    """Configure Django."""
    import django
    from django.conf import settings

    sys.path.insert(0, str(Path(__file__).parent))
    settings.configure(
        SECRET_KEY="not secret: nothing but made-up data is behind it",
        DEBUG=False,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="gazette.urls",
        WAGTAIL_SITE_NAME="Harbour Gazette",
        WAGTAILADMIN_BASE_URL="http://127.0.0.1",
        WAGTAIL_AUTOSAVE_INTERVAL=0,
        WAGTAIL_ENABLE_UPDATE_CHECK=False,
        WAGTAIL_ENABLE_WHATS_NEW_BANNER=False,
        WAGTAIL_GRAVATAR_PROVIDER_URL=None,
        WAGTAILSEARCH_BACKENDS={"default": {"BACKEND": "wagtail.search.backends.database"}},
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(database(folder)), "OPTIONS": {"timeout": 20}}},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        STATIC_URL="/static/",
        STATIC_ROOT=str(folder / "static"),
        MEDIA_ROOT=str(folder / "media"),
        TIME_ZONE="UTC",
        USE_TZ=True,
        INSTALLED_APPS=[
            "gazette",
            *(f"wagtail.{name}" for name in ("contrib.redirects", "users", "snippets", "documents", "images", "search", "admin")),
            *("wagtail", "wagtail.sites", "modelcluster", "taggit", "django_filters", "django_tasks"),
            *(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")),
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "wagtail.contrib.redirects.middleware.RedirectMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
    )
    django.setup()


def database(folder: Path) -> Path:
    """Return the path of the database."""
    return folder / "site.sqlite3"


def application(folder: Path):
    """Return the WSGI application."""
    configured(folder)
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()


def forget() -> None:
    """Drop caches, so that the data is read again."""
    from django.core.cache import cache
    from wagtail.models import Site

    cache.clear()
    Site.clear_site_root_paths_cache()


def build(folder: Path) -> None:
    """Make the site with its data."""
    folder.mkdir(parents=True)
    configured(folder)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    _people()
    sections = _sections()
    _pages(sections)
    _snippets()


def _people() -> None:
    from django.contrib.auth.models import Group, User

    for name, first, last, group in USERS:
        make = User.objects.create_user if group else User.objects.create_superuser
        user = make(name, f"{name}@gazette.test", WORD, first_name=first, last_name=last)
        if group:
            user.groups.add(Group.objects.get(name=group))
    User.objects.update(date_joined=BEGIN)


def _sections() -> dict:
    from gazette.models import HomePage, SectionPage
    from wagtail.models import Page, Site

    Page.objects.filter(depth__gt=1).delete()
    Site.objects.all().delete()
    root = Page.objects.get(depth=1)
    home = root.add_child(instance=HomePage(title="Harbour Gazette", slug="home", intro="News from the harbour since 1904."))
    Site.objects.create(hostname="localhost", root_page=home, is_default_site=True, site_name="Harbour Gazette")
    return {slug: home.add_child(instance=SectionPage(title=title, slug=slug, intro=intro)) for title, slug, intro in SECTIONS}


def _pages(sections: dict) -> None:
    from django.utils.text import slugify
    from gazette.models import ArticlePage, EventPage
    from wagtail.models import Page, Revision

    for section, title, day, author, summary, body in (*ARTICLES, *DRAFTS):
        live = title not in {draft[1] for draft in DRAFTS}
        page = ArticlePage(
            title=title, slug=slugify(title), date=date.fromisoformat(day), author=author, summary=summary, body=body, live=live
        )
        _kept(sections[section].add_child(instance=page), live)
    for title, day, venue, price, body in EVENTS:
        page = EventPage(title=title, slug=slugify(title), date=date.fromisoformat(day), venue=venue, price=price, body=body)
        _kept(sections["events"].add_child(instance=page), True)
    Page.objects.update(first_published_at=BEGIN, last_published_at=BEGIN, latest_revision_created_at=BEGIN)
    Revision.objects.update(created_at=BEGIN)


def _kept(page, live: bool) -> None:
    revision = page.save_revision()
    if live:
        revision.publish()


def _snippets() -> None:
    from gazette.models import Contact, Notice
    from wagtail.contrib.redirects.models import Redirect

    for text, level, shown in NOTICES:
        Notice.objects.create(text=text, level=level, shown=shown)
    for name, post, phone in CONTACTS:
        Contact.objects.create(name=name, post=post, phone=phone)
    for old, new in REDIRECTS:
        Redirect.objects.create(old_path=old, redirect_link=new, is_permanent=True)
