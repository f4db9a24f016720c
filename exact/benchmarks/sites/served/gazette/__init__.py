"""The Django application of the Wagtail site: a newspaper of a harbour town."""
