"""Any history, as a target accepts it. `rules` lists the repairs and says which apply."""
