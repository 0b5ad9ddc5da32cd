"""What the edge keeps: keys, who may read which artifact, and the admin key's file."""
