"""From frames to events to a response, and the grammar of events. Pure."""
