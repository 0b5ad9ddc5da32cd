"""Runs as pure values: what a Run becomes when its Task changes, and which events tell it."""
