"""The command line: what a person types, what they see while it works, and what to do next when it fails."""
