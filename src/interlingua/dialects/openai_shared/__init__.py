"""What both of OpenAI's dialects share: rules, operations, the server side besides the codec."""
