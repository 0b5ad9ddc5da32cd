"""The use-cases of cost_quote, one a file."""
