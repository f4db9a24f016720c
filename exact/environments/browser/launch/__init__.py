"""The start of Chromium and of Playwright's driver, with profiles, contexts and traces."""
