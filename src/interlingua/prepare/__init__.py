"""Makes a request that its target accepts: settings, thinking, media, history, schemas. Pure."""
