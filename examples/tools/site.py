"""A small site to try tools on: tickets of customers, and a log-in by a code that comes by mail. python site.py PORT MAILDIR"""

import mailbox
import secrets
import sys
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

CODES = []


def send_code():
    CODES.append(f"{secrets.randbelow(10**6):06}")
    letter = EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = "Your code", "shop@example.org", "ann@example.org"
    letter.set_content(f"Your code is {CODES[-1]}.")
    mailbox.Maildir(sys.argv[2]).add(letter)


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        match self.path:
            case "/ticket":
                self.form("Ticket", "Customer number", "Open ticket")
            case "/login":
                self.form("Log in", "Name", "Send code")
            case _:
                self.send_error(404)

    def do_POST(self):
        said = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).get("said", [""])[0]
        match self.path:
            case "/ticket":
                self.show(
                    f"<h1>Ticket opened</h1><p>It is for customer {int(said)}.</p>" if said.isdigit() else "<h1>No such customer</h1>"
                )
            case "/login":
                send_code()
                self.form("Code", "Code from the mail", "Log in", "/code")
            case "/code":
                self.show("<h1>Welcome, Ann</h1>" if CODES[-1:] == [said] else "<h1>Wrong code</h1>")

    def form(self, title, field, button, action=""):
        self.show(
            f"<h1>{title}</h1><form method=post action='{action}'><label>{field} <input name=said></label> <button>{button}</button></form>"
        )

    def show(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html><title>Shop</title>{body}".encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    mailbox.Maildir(sys.argv[2], create=True)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Site).serve_forever()
