"""
Bulk jobs on many machines: engines cut and place work, and nothing else.

`executor` gives rows to an engine and takes back what became of them, `worker` answers rows where
the engine has placed them, `ray` and `daft` are the engines. Limits, retries, errors and what was
paid for are the worker's and the ledger's: an engine that repeats, loses or doubles rows changes
nothing in the output.
"""
