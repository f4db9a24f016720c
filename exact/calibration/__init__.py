"""Calibration of value functions: their evaluations compared with outcomes."""
