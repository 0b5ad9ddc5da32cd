"""Prices as pure arithmetic on decimals: rules in, quotes out."""
