"""Inbound HTTP: the accounts in their dialects, the files they made, and the lab that scripts and audits them."""
