"""Starting Chromium and Playwright's driver, with profiles, contexts and traces."""
