"""An identity provider: Django with django-oauth-toolkit. Usage: _identity.py FOLDER HOST PORT REDIRECT_URI PASSWORD

It prints a line with the id and the secret of its one application, then serves until it is ended.
"""

from __future__ import annotations

import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

FORM = "<title>Sign in</title><form method=post>{% csrf_token %}{{ form.as_p }}<button>Log in</button></form>"


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def main(folder: str, host: str, port: str, redirect: str, password: str) -> None:
    settings.configure(
        ALLOWED_HOSTS=["*"], SECRET_KEY="of a bench", ROOT_URLCONF=__name__, LOGIN_URL="/login/",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(Path(folder) / "identity.sqlite")}},
        TEMPLATES=[{
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {"loaders": [("django.template.loaders.locmem.Loader", {"registration/login.html": FORM})]},
        }],
        OAUTH2_PROVIDER={"PKCE_REQUIRED": False, "SCOPES": {"read": "Read"}},
    )  # fmt: skip
    django.setup()
    from django.contrib.auth.models import User
    from django.contrib.auth.views import LoginView
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from django.urls import include, path
    from oauth2_provider.models import Application

    globals()["urlpatterns"] = [
        path("login/", LoginView.as_view()),
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    ]
    call_command("migrate", verbosity=0)
    User.objects.create_user("ann", password=password)
    made = Application(
        name="app",
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=redirect,
        skip_authorization=True,
    )
    secret = made.client_secret  # it is hashed as it is saved
    made.save()
    server = make_server(host, int(port), get_wsgi_application(), Server, Silent)
    print(made.client_id, secret, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
