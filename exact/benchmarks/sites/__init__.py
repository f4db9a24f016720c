"""Sites that run here: Trac and Wagtail, with 30 tasks each."""
