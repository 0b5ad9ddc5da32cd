"""Reading what stands in a picture: finding lines of text and telling their letters by the studio's own font."""
