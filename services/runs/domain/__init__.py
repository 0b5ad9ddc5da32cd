"""Runs as pure values. `reading` makes a Plan of a document, `engine` decides what is next, `hearing`, `deciding` and
`commands` answer the events of what others say, and `history` folds events into the Run."""
