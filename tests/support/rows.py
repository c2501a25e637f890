"""An address and variables for every row, in tests."""

from interlingua.providers.catalog.profiles import profile_for

HOST = "https://here.example"


def answers_chats(row):
    """Whether it has models that chat; some have only embeddings."""
    return profile_for(row.dialect, "", row.name).kind in (None, "chat")


def address_of(row):
    """A base URL for an adapter; None if the row has an address of its own."""
    return HOST + (row.base_path or "/v1") if row.address_env and not row.is_embedded else None


def variables_of(row):
    """The variables that configure a row."""
    values = dict.fromkeys((names[0] for names in row.url_env.values()), "acme")
    if not row.base_url and row.base_url_env:
        values[row.base_url_env[0]] = HOST
    return {row.key_env[0]: "k", **values}
