"""Desktops: X11 with applications that describe themselves by AT-SPI."""
