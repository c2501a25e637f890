"""The facts of the shipped dialects, by name, for tests of what reads them."""

from interlingua import dialects

NAMES = (
    *("openai_responses", "openai_chat", "anthropic_messages", "gemini_generate"),
    "bedrock_converse",
)
FACTS = {name: dialects.get(name).FACTS for name in NAMES}
HISTORY = {name: facts.history for name, facts in FACTS.items()}
ANTHROPIC = FACTS["anthropic_messages"].schema
GEMINI_JSON_SCHEMA = FACTS["gemini_generate"].schema
OPENAI_STRICT = FACTS["openai_responses"].schema
