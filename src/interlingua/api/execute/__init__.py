"""`execute`: a run with callbacks, whose errors are returned instead of raised."""
