"""A Trac with tickets, a wiki and four people: `build` makes it, always the same, `application` serves it, `restore` restores it."""

from __future__ import annotations

import logging
import os
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trac_data import ACCOUNTS, COMMENTS, COMPONENTS, DEVELOPERS, MILESTONES, TICKETS, WIKI, WORD

START = datetime(2024, 1, 8, 9, 0, tzinfo=UTC)
KEPT = "auth_cookie"
"""Table of log-ins, which a reset leaves alone."""
OPTIONS = {
    "components": {
        "trac.web.auth.loginmodule": "disabled",
        "acct_mgr.web_ui.loginmodule": "enabled",
        "acct_mgr.api.accountmanager": "enabled",
        "acct_mgr.db.sessionstore": "enabled",
        "acct_mgr.pwhash.htdigesthashmethod": "enabled",
    },
    "account-manager": {"password_store": "SessionStore", "db_htdigest_realm": "lighthouse", "persistent_sessions": "false"},
    "trac": {"default_timezone": "UTC", "default_dateinfo_format": "absolute", "show_email_addresses": "false"},
    "project": {"name": "Lighthouse", "descr": "Issues and handbook of the Lighthouse library"},
    "header_logo": {"alt": "Lighthouse", "src": "", "width": "0"},
    "ticket": {"restrict_owner": "false", "default_component": "core", "default_milestone": "", "default_type": "defect"},
    "logging": {"log_type": "none"},
    "notification": {"smtp_enabled": "false"},
    "timeline": {"default_daysback": "90"},
}


def build(folder: Path) -> None:
    """Make the environment with its data."""
    from trac.admin.console import TracAdmin
    from trac.env import open_environment

    logging.disable(logging.CRITICAL)
    TracAdmin(str(folder)).do_initenv("Lighthouse sqlite:db/trac.db")
    env = open_environment(str(folder), use_cache=False)
    for section, options in OPTIONS.items():
        for name, value in options.items():
            env.config.set(section, name, value)
    env.config.save()
    env.shutdown()
    env = open_environment(str(folder), use_cache=False)
    _people(env)
    _order(env)
    _tickets(env)
    _wiki(env)
    env.shutdown()
    with sqlite3.connect(folder / "db" / "trac.db") as database:
        database.execute("vacuum")


def application(folder: Path):
    """Return the WSGI application."""
    from trac.web.main import dispatch_request

    os.environ["TRAC_ENV"] = str(folder)

    def application(environ, start_response):
        environ["trac.env_path"] = str(folder)
        return dispatch_request(environ, start_response)

    return application


def database(folder: Path) -> Path:
    """Return the path of the database."""
    return folder / "db" / "trac.db"


def forget() -> None:
    """Drop caches, so that the data is read again."""
    import trac.env

    with trac.env.env_cache_lock:
        for env in trac.env.env_cache.values():
            env.shutdown()
        trac.env.env_cache.clear()


def _people(env) -> None:
    from acct_mgr.api import AccountManager
    from trac.perm import PermissionSystem

    permissions = PermissionSystem(env)
    for name in ACCOUNTS:
        AccountManager(env).set_password(name, WORD)
    for name in DEVELOPERS:
        permissions.grant_permission(name, "developers")
    permissions.grant_permission("alice", "TRAC_ADMIN")
    for action in ("TICKET_ADMIN", "MILESTONE_ADMIN", "WIKI_DELETE", "REPORT_ADMIN"):
        permissions.grant_permission("developers", action)


def _order(env) -> None:
    from trac.ticket.model import Component, Milestone, Version

    for old in list(Component.select(env)):
        old.delete()
    for old in list(Milestone.select(env)):
        old.delete()
    for name, owner, description in COMPONENTS:
        component = Component(env)
        component.name, component.owner, component.description = name, owner, description
        component.insert()
    for name, due, completed, description in MILESTONES:
        milestone = Milestone(env)
        milestone.name, milestone.description = name, description
        milestone.due = datetime.fromisoformat(due).replace(tzinfo=UTC) if due else None
        milestone.completed = datetime.fromisoformat(completed).replace(tzinfo=UTC) if completed else None
        milestone.insert()
    for version in Version.select(env):
        version.time = START - timedelta(days=400)
        version.update()


def _tickets(env) -> None:
    from trac.ticket.model import Ticket

    for at, (summary, kind, component, priority, milestone, owner, reporter, status, keywords, description) in enumerate(TICKETS):
        ticket = Ticket(env)
        ticket.populate(
            {
                "summary": summary,
                "type": kind,
                "component": component,
                "priority": priority,
                "milestone": milestone,
                "owner": owner,
                "reporter": reporter,
                "status": status.partition(":")[0],
                "resolution": status.partition(":")[2],
                "keywords": keywords,
                "description": description,
                "version": "",
                "severity": "",
                "cc": "",
            }
        )
        ticket.insert(when=START + timedelta(days=3 * at))
    for number, author, day, text in COMMENTS:
        Ticket(env, number).save_changes(author, text, when=START + timedelta(days=day, hours=4))


def _wiki(env) -> None:
    from trac.wiki.model import WikiPage

    with env.db_transaction as db:
        db("DELETE FROM wiki")
    for at, (name, author, text) in enumerate(WIKI):
        page = WikiPage(env, name)
        page.text = text
        page.save(author, "", t=START + timedelta(days=at))
