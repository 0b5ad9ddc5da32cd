"""The use-cases of health, one a file: gather, let the domain decide, record."""
