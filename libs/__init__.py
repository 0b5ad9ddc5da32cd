"""The ground that every house stands on. Libraries here never import a service."""
