"""Schemas as each target accepts them. `rules` says what that is; `narrow` makes them so."""
