"""A toy context: the smallest honest example of tables, versions and their agreement."""
