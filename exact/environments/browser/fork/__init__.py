"""Browser environments that fork: Chromium in a gVisor sandbox, reached through a relay."""
