"""The local studio: a stand-in for the outside world of providers.

Owns: virtual provider accounts with their keys, models, prices and limits; the tasks they accepted; the pictures, clips
and speech they made; the script of faults and the ledger that judges double charging.

Refuses: to know the product. Nothing imports it and it imports nothing of the product; the only way in is HTTP, in the
providers' own dialects. It has no selection, no retries and no memory of who asked, save what a provider would see.

Where it differs from the other houses: `dialects/` (pure reading and writing of each provider's JSON), `media/` (real
pictures, clips and speech), `reading/` (real OCR), `engines/` (larger models, an extra) and `routes/` (inbound HTTP)
take the place of `wire`, `peers` and `servicer`.
"""
