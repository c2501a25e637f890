"""The canonical language: content, messages, requests, responses, events, errors, contracts."""
