"""The dialects. Each folder is data plus pure functions: a manifest, pairs of build and parse, a table of faults.

Laws of this package:
- nothing here waits, opens a socket, reads a clock or draws chance: the driver sends, the app waits;
- an adapter reads only the fields that its manifest names, and everything else in a reply is ignored on purpose or
  noticed;
- a table says only what general wording (domain/wording) cannot know.
Adding a provider is one folder, one line in `registry`, and recorded exchanges in tests/cases/exchanges/<name>.
"""
