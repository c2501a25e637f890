"""What every room above uses: cancelling, tasks, callbacks, ids, log records, stream folding."""
