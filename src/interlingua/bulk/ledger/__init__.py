"""The ledger: which requests were paid for, and what was answered."""
