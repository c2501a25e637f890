"""Functions for embeddings, images, speech, video, batches and files, over operations."""
