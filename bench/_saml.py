"""A log-in by SAML's POST binding: an identity provider and a service provider of pysaml2. Usage: _saml.py FOLDER HOST HOST PASSWORD

The first host is the service's. It prints a line with both addresses once they are served. Answers are signed by pyXMLSecurity, and the
service takes none whose signature does not fit.
"""

from __future__ import annotations

import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.client import Saml2Client
from saml2.config import IdPConfig, SPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAMEID_FORMAT_UNSPECIFIED, NameID
from saml2.server import Server

FORM = (
    "<title>Sign in</title><form method=post><label>User <input name=user></label>"
    "<label>Password <input name=password type=password></label><button>Log in</button></form>"
)
Answer = tuple[str, list[tuple[str, str]], str]


class Threaded(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def credentials(folder: Path, name: str) -> dict[str, str]:
    """Make a key with a certificate of its own. Return pysaml2's settings for them."""
    key, subject = rsa.generate_private_key(65537, 2048), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=2))
    plain = serialization.NoEncryption()
    files = {"key_file": folder / f"{name}.key", "cert_file": folder / f"{name}.crt"}
    files["key_file"].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain))
    files["cert_file"].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return {key: str(path) for key, path in files.items()}


def serve(host: str, answer: Callable[[str, dict[str, str], str], Answer]) -> str:
    """Serve a function of path, fields and cookie on a free port of a host. Return its address."""

    def application(environ: dict[str, Any], respond: Any) -> Iterable[bytes]:
        given = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        fields = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", ""))) | dict(urllib.parse.parse_qsl(given))
        status, headers, body = answer(environ["PATH_INFO"], fields, environ.get("HTTP_COOKIE", ""))
        respond(status, [("Content-Type", "text/html; charset=utf-8"), *headers])
        return [body.encode()]

    server = make_server(host, 0, application, Threaded, Silent)
    threading.Thread(target=server.serve_forever).start()
    return f"http://{host}:{server.server_address[1]}"


class Service:
    """A site that only people whom an identity provider knows may see."""

    def __init__(self, sp: Saml2Client, identity: str) -> None:
        self.sp, self.identity = sp, identity
        self.asked: dict[str, str] = {}
        """Requests that the provider has not answered, with the page to go to then."""

    def __call__(self, path: str, fields: dict[str, str], cookie: str) -> Answer:
        """Answer with the page, or the way to the provider; at `/acs`, take the provider's signed answer."""
        if path == "/acs":
            answer = self.sp.parse_authn_request_response(fields["SAMLResponse"], BINDING_HTTP_POST, self.asked)
            return "303 See Other", [("Location", "/"), ("Set-Cookie", f"in={answer.name_id.text}; HttpOnly")], ""
        if "in=ann" in cookie:
            return "200 OK", [], "<title>Home</title><h1>Welcome ann</h1>"
        id, made = self.sp.prepare_for_authenticate(entityid=f"{self.identity}/metadata", binding=BINDING_HTTP_REDIRECT)
        self.asked[id] = "/"
        return "302 Found", [each for each in made["headers"] if each[0] == "Location"], ""


class Identity:
    """An identity provider with one user."""

    def __init__(self, idp: Server, password: str) -> None:
        self.idp, self.password = idp, password

    def __call__(self, path: str, fields: dict[str, str], cookie: str) -> Answer:
        """Answer with a form, or with a page that posts a signed answer to the service."""
        if (fields.get("user"), fields.get("password")) != ("ann", self.password):
            return "200 OK", [], FORM
        request = self.idp.parse_authn_request(fields["SAMLRequest"], BINDING_HTTP_REDIRECT).message
        back = self.idp.response_args(request)
        response = self.idp.create_authn_response(
            {}, userid="ann", name_id=NameID(format=NAMEID_FORMAT_UNSPECIFIED, text="ann"), sign_response=True,
            authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "authn_auth": self.idp.config.entityid}, **back,
        )  # fmt: skip
        sent = self.idp.apply_binding(BINDING_HTTP_POST, str(response), back["destination"], response=True)
        return "200 OK", [], str(sent["data"])


def main(folder: str, service_host: str, identity_host: str, password: str) -> None:
    parts: dict[str, Any] = {}
    service = serve(service_host, lambda *given: parts["service"](*given))
    identity = serve(identity_host, lambda *given: parts["identity"](*given))
    shared = {"crypto_backend": "XMLSecurity"}
    sp = {
        **shared, **credentials(Path(folder), "service"), "entityid": f"{service}/metadata",
        "service": {"sp": {
            "endpoints": {"assertion_consumer_service": [(f"{service}/acs", BINDING_HTTP_POST)]},
            "want_response_signed": True, "want_assertions_signed": False, "authn_requests_signed": False,
        }},
    }  # fmt: skip
    idp = {
        **shared, **credentials(Path(folder), "identity"), "entityid": f"{identity}/metadata",
        "service": {"idp": {
            "endpoints": {"single_sign_on_service": [(f"{identity}/sso", BINDING_HTTP_REDIRECT)]},
            "policy": {"default": {"lifetime": {"minutes": 5}}},
        }},
    }  # fmt: skip
    of_sp, of_idp = Path(folder) / "sp.xml", Path(folder) / "idp.xml"
    of_sp.write_text(str(entity_descriptor(SPConfig().load(sp))))
    of_idp.write_text(str(entity_descriptor(IdPConfig().load(idp))))
    parts["service"] = Service(Saml2Client(SPConfig().load({**sp, "metadata": {"local": [str(of_idp)]}})), identity)
    parts["identity"] = Identity(Server(config=IdPConfig().load({**idp, "metadata": {"local": [str(of_sp)]}})), password)
    print(service, identity, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
