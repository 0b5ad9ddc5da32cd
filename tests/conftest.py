"""Fixtures that every suite may ask for."""

pytest_plugins = ["tests.support.postgres"]
