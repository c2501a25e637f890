"""Rates of token estimates, and their bounds. Written by `scripts/token_rates.py`."""

# fmt: off
FITTED: dict[tuple[str, str], dict[str, float]] = {
    # fitted to 44 recorded requests
    ("", "qwen"): {"text": 0.969, "request": 3.6, "message": 4.9, "call": 7.7, "tools": 76.7,
        "tool": 20.8, "node": 16.4, "format": 0, "format_node": 0, "thinking": 1.028},
    # fitted to 45 recorded requests
    ("", "grok"): {"text": 1.009, "request": 176.4, "message": 3.7, "call": 5.2, "tools": 23.6,
        "node": 10.0, "thinking": 0.963},
    # fitted to 25 recorded requests
    ("", "gpt-4"): {"text": 1.022, "request": 3.4, "message": 3.2, "tools": 15.5, "forced": 2.1,
        "tool": 0.1, "node": 5.1},
    # fitted to 280 recorded requests
    ("", "gpt-5"): {"text": 1.031, "request": 1.5, "message": 4.6, "call": 5.7, "tools": 14.2,
        "forced": 1.9, "node": 5.2, "format": 7.9, "format_node": 5.5, "thinking": 1.057,
        "signature": 0.104},
    # fitted to 21 recorded requests
    ("", "llama"): {"text": 0.821, "request": 10.6, "message": 3.3, "call": 7.5, "tools": 163.0,
        "tool": 19.1, "node": 12.2, "format": 0, "format_node": 0},
    # fitted to 111 recorded requests
    ("", "stral"): {"text": 1.286, "request": 2.7, "message": 0.0, "call": 4.6, "tools": 13.0,
        "forced": 2.7, "tool": 7.5, "node": 10.4, "format": 0, "format_node": 0},
    # fitted to 576 recorded requests
    ("", "gpt-4o"): {"text": 1.008, "request": 3.3, "message": 4.0, "call": 5.8, "tools": 14.7,
        "forced": 2.5, "format": 11.0, "format_node": 9.6},
    # fitted to 88 recorded requests
    ("", "gemini"): {"text": 1.097, "request": 0.0, "message": 0.8, "call": 1.6, "tools": 1.1,
        "forced": 0, "tool": 2.3, "node": 12.5, "format": 0, "format_node": 0, "thinking": 1.1,
        "signature": 0.182, "keeps_thinking": True, "image": 1090, "page": 520, "second": 25},
    # fitted to 32 recorded requests
    ("", "claude"): {"text": 1.42, "request": 4.8, "message": 3.2, "call": 28.0, "tools": 350.5,
        "forced": 118.3, "tool": 14.5, "node": 20.6, "format": 54, "format_node": 40.7,
        "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 291 recorded requests
    ("", "gpt-4-1"): {"text": 0.992, "request": 3.4, "call": 4.7, "tools": 14.9, "forced": 2.1,
        "format": 9.4, "format_node": 13.4},
    # fitted to 6 recorded requests
    ("", "gpt-oss"): {"text": 0.994, "request": 67.7, "node": 12.0},
    # fitted to 55 recorded requests
    ("", "gpt-3-5"): {"text": 1.054, "request": 3.7, "message": 3.5, "call": 5.4, "tools": 16.0,
        "tool": 0.1, "node": 5.3},
    # fitted to 13 recorded requests
    ("", "llama-4"): {"text": 1.006, "request": 30.2, "message": 4.0, "call": 7.5, "tools":
        622.4, "tool": 19.9, "node": 14.8, "format": 0, "format_node": 0},
    # fitted to 89 recorded requests
    ("", "deepseek"): {"text": 0.992, "request": 2.6, "message": 2.4, "call": 11.7, "tools":
        221.2, "tool": 9.0, "node": 19.6, "format": 0, "format_node": 0, "thinking": 1.058},
    # fitted to 65 recorded requests
    ("", "claude-3"): {"text": 0.993, "request": 5.1, "message": 2.0, "call": 28.3, "tools":
        291.3, "forced": -31.4, "tool": 14.5, "node": 21.3, "format": 54, "format_node": 40.7,
        "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 338 recorded requests
    ("", "gemini-2"): {"text": 1.102, "request": 0.0, "message": 1.0, "call": 8.7, "tools": 2.1,
        "forced": 0.5, "tool": 6.0, "node": 9.1, "format": 0, "format_node": 0, "thinking":
        1.143, "signature": 0.009, "keeps_thinking": True, "image": 258, "page": 258, "second":
        32},
    # fitted to 8 recorded requests
    ("", "anthropic"): {"text": 1.146, "request": 4.5, "message": 2.5, "call": 28.4, "tools":
        340, "forced": 115, "tool": 14.5, "node": 20.8, "format": 54, "format_node": 40.7,
        "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 81 recorded requests
    ("", "gemini-2-0"): {"text": 1.044, "request": 0.0, "message": 0.0, "call": 1.1, "tools":
        2.0, "forced": -0.1, "tool": 0.9, "node": 0.0, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.0, "keeps_thinking": True, "image": 1290, "page": 258,
        "second": 32},
    # fitted to 741 recorded requests
    ("", "gpt-4o-mini"): {"text": 1.007, "request": 3.2, "call": 4.7, "tools": 11.4, "forced":
        2.2, "node": 5.7, "format": 7.8, "format_node": 11.1, "image": 14000},
    # fitted to 260 recorded requests
    ("", "claude-haiku-4"): {"text": 1.124, "request": 4.7, "message": 1.9, "call": 28.7,
        "tools": 480.3, "forced": 99.6, "tool": 14.5, "node": 22.5, "format": 50.1,
        "format_node": 35.3, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 224 recorded requests
    ("", "claude-sonnet-4"): {"text": 1.189, "request": 5.3, "message": 1.8, "call": 28.4,
        "tools": 309.7, "forced": -30.6, "tool": 14.7, "node": 22.0, "format": 54,
        "format_node": 40.7, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 4 recorded requests
    ("", "claude-opus-4-6"): {"text": 1.073, "request": 6.7, "message": 3.6, "call": 28.4,
        "tools": 467.6, "forced": 97.4, "tool": 14.5, "node": 20.7, "format": 54, "format_node":
        40.7, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 7 recorded requests
    ("", "claude-opus-4-8"): {"text": 1.434, "request": 6.7, "message": 3.2, "call": 27.8,
        "tools": 297.1, "forced": 115, "tool": 14.4, "node": 20.6, "format": 54, "format_node":
        40.7, "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 7 recorded requests
    ("", "claude-opus-4-7"): {"text": 1.506, "request": 7.0, "call": 28.5, "tools": 677.8,
        "forced": 131.9, "tool": 14.5, "node": 21.0, "format": 55.6, "format_node": 44.3,
        "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 124 recorded requests
    ("", "claude-sonnet-4-5"): {"text": 1.134, "request": 6.0, "message": 3.6, "call": 27.2,
        "tools": 488.2, "forced": 99.9, "tool": 14.1, "node": 18.9, "format": 58.1,
        "format_node": 40.8, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 146 recorded requests
    ("", "claude-sonnet-4-6"): {"text": 1.046, "request": 5.0, "message": 2.5, "call": 31.0,
        "tools": 490.7, "forced": 95.7, "tool": 15.0, "node": 18.6, "format": 55.3,
        "format_node": 43.0, "thinking": 1.202, "signature": 0.0, "image": 1000, "page": 1600},
    # fitted to 13 recorded requests
    ("ollama", "qwen"): {"text": 0.986, "request": 3.9, "message": 5.2, "call": 7.6, "tools":
        68.5, "tool": 19.7, "node": 14.5, "format": 0, "format_node": 0, "thinking": 0.986},
    # fitted to 31 recorded requests
    ("doubleword", "qwen"): {"text": 1.034, "request": 4.2, "message": 5.5, "call": 7.9,
        "tools": 68.9, "forced": 2.1, "tool": 18.3, "node": 13.2, "format": 0, "format_node": 0,
        "thinking": 1.071},
    # fitted to 11 recorded requests
    ("venice", "qwen"): {"text": 1.224, "request": 3.6, "message": 4.9, "call": 7.7, "tools":
        77.0, "tool": 20.8, "node": 16.5, "format": 0, "format_node": 0, "thinking": 1.028},
    # fitted to 10 recorded requests
    ("azure", "gpt-5"): {"text": 1.26, "request": 0.9, "call": 5.8, "tools": 14.7, "forced":
        1.9, "tool": 0.1, "node": 5.5, "format": 7.9, "format_node": 5.5, "thinking": 1.057,
        "signature": 0.104},
    # fitted to 4 recorded requests
    ("local", "gpt-5"): {"text": 1.099, "request": 1.7, "message": 4.8, "call": 5.7, "tools":
        14.2, "forced": 1.9, "node": 5.2, "format": 7.9, "format_node": 5.5, "thinking": 1.057,
        "signature": 0.104},
    # fitted to 9 recorded requests
    ("openrouter", "gpt-5"): {"text": 1.124, "request": 1.3, "message": 4.1, "call": 5.7,
        "tools": 15.1, "forced": 1.9, "tool": 0.1, "node": 5.3, "format": 7.9, "format_node":
        5.5, "thinking": 1.057, "signature": 0.104},
    # fitted to 12 recorded requests
    ("azure", "gpt-4"): {"text": 1.033, "request": 3.4, "message": 3.5, "call": 5.2, "tools":
        14.3, "node": 4.8},
    # fitted to 4 recorded requests
    ("ollama", "llama"): {"text": 0.833, "request": 8.5, "message": 2.8, "call": 7.5, "tools":
        163.0, "tool": 19.1, "node": 12.2, "format": 0, "format_node": 0},
    # fitted to 104 recorded requests
    ("chat", "gpt-5"): {"text": 1.099, "request": 1.3, "message": 4.6, "call": 6.0, "tools":
        19.8, "forced": 1.9, "tool": 0.8, "node": 6.4, "format": 8.1, "format_node": 5.8,
        "thinking": 1.057, "signature": 0.104},
    # fitted to 8 recorded requests
    ("together", "llama"): {"text": 1.034, "request": 13.5, "message": 3.9, "call": 7.5,
        "tools": 140.6, "tool": 18.8, "node": 11.9, "format": 0, "format_node": 0},
    # fitted to 9 recorded requests
    ("venice", "stral"): {"text": 1.44, "request": 2.7, "message": 0.1, "call": 4.6, "tools":
        13.2, "forced": 2.7, "tool": 7.6, "node": 10.8, "format": 0, "format_node": 0},
    # fitted to 37 recorded requests
    ("openrouter", "gpt-4o"): {"text": 0.966, "request": 2.9, "message": 4.3, "call": 6.1,
        "tools": 13.9, "forced": 2.5, "node": 4.5, "format": 9.9, "format_node": 8.3},
    # fitted to 30 recorded requests
    ("vertex", "gemini"): {"text": 0.777, "request": 0.0, "message": 0.3, "call": 2.2, "tools":
        0.1, "forced": 0, "tool": 1.3, "node": 6.2, "format": 0, "format_node": 0, "thinking":
        1.1, "signature": 0.004, "keeps_thinking": True, "image": 1090, "page": 520, "second":
        25},
    # fitted to 17 recorded requests
    ("openrouter", "gpt-4-1"): {"text": 1.038, "request": 3.4, "message": 3.4, "call": 4.2,
        "tools": 16.4, "forced": 2.3, "tool": 0.2, "format": 9.4, "format_node": 13.4},
    # fitted to 12 recorded requests
    ("ollama", "deepseek"): {"text": 0.923, "request": 2.0, "message": 0.5, "call": 11.7,
        "tools": 221.2, "tool": 9.0, "node": 19.6, "format": 0, "format_node": 0, "thinking":
        1.058},
    # fitted to 13 recorded requests
    ("chat", "claude-3"): {"text": 1.149, "request": 5.0, "message": 2.0, "call": 27.2, "tools":
        306.7, "forced": -31.4, "tool": 14.5, "node": 21.4, "format": 56.9, "format_node": 45.6,
        "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 13 recorded requests
    ("databricks", "claude-3"): {"text": 1.149, "request": 5.0, "message": 2.0, "call": 27.2,
        "tools": 306.7, "forced": -31.4, "tool": 14.5, "node": 21.4, "format": 56.9,
        "format_node": 45.6, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 5 recorded requests
    ("huggingface", "deepseek"): {"text": 0.025, "request": 2.1, "message": 1.9, "call": 11.7,
        "tools": 0.0, "forced": 1.9, "tool": 8.6, "node": 14.0, "format": 0, "format_node": 0,
        "thinking": 1.058},
    # fitted to 19 recorded requests
    ("vertex", "gemini-2"): {"text": 0.891, "request": 1.0, "message": 0.7, "call": 2.1,
        "tools": 0.0, "forced": 0, "tool": 1.2, "node": 6.0, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.004, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 8 recorded requests
    ("chat", "anthropic"): {"text": 1.094, "request": 4.4, "message": 2.4, "call": 28.4,
        "tools": 340, "forced": 115, "tool": 14.5, "node": 20.8, "format": 54, "format_node":
        40.7, "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 8 recorded requests
    ("openrouter", "anthropic"): {"text": 1.094, "request": 4.4, "message": 2.4, "call": 28.4,
        "tools": 340, "forced": 115, "tool": 14.5, "node": 20.8, "format": 54, "format_node":
        40.7, "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 13 recorded requests
    ("chat", "gemini-2-0"): {"text": 1.127, "request": 0.0, "message": 0.0, "call": 1.4,
        "tools": 1.9, "forced": -0.3, "tool": 0.9, "node": 0.2, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.0, "keeps_thinking": True, "image": 1290, "page": 258,
        "second": 32},
    # fitted to 13 recorded requests
    ("openrouter", "gemini-2-0"): {"text": 1.127, "request": 0.0, "message": 0.0, "call": 1.4,
        "tools": 1.9, "forced": -0.3, "tool": 0.9, "node": 0.2, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.0, "keeps_thinking": True, "image": 1290, "page": 258,
        "second": 32},
    # fitted to 8 recorded requests
    ("vertex", "gemini-2-0"): {"text": 0.838, "request": 0.7, "message": 0.7, "call": 2.1,
        "tools": 0.0, "forced": 0, "tool": 1.2, "node": 6.0, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.004, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 14 recorded requests
    ("azure", "gpt-4o-mini"): {"text": 1.051, "request": 3.3, "message": 3.7, "call": 5.2,
        "tools": 14.3, "node": 4.8, "format": 9.1, "format_node": 11.4},
    # fitted to 6 recorded requests
    ("chat", "claude-haiku-4"): {"text": 1.034, "request": 4.3, "message": 1.1, "call": 29.1,
        "tools": 498.1, "forced": 99.6, "tool": 14.5, "node": 22.6, "format": 50.1,
        "format_node": 35.3, "thinking": 1.216, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 6 recorded requests
    ("openrouter", "claude-haiku-4"): {"text": 1.034, "request": 4.3, "message": 1.1, "call":
        29.1, "tools": 498.1, "forced": 99.6, "tool": 14.5, "node": 22.6, "format": 50.1,
        "format_node": 35.3, "thinking": 1.216, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 7 recorded requests
    ("claude", "claude-opus-4-8"): {"text": 1.377, "request": 6.5, "message": 2.6, "call": 27.3,
        "tools": 271.3, "forced": 115, "tool": 14.3, "node": 20.5, "format": 54, "format_node":
        40.7, "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 7 recorded requests
    ("anthropic", "claude-opus-4-8"): {"text": 1.377, "request": 6.5, "message": 2.6, "call":
        27.3, "tools": 271.3, "forced": 115, "tool": 14.3, "node": 20.5, "format": 54,
        "format_node": 40.7, "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 10 recorded requests
    ("chat", "claude-sonnet-4-6"): {"text": 1.143, "request": 5.0, "message": 2.6, "call": 30.9,
        "tools": 444.1, "forced": 95.7, "tool": 15.0, "node": 18.5, "format": 55.3,
        "format_node": 43.0, "thinking": 1.202, "signature": 0.0, "image": 1000, "page": 1600},
    # fitted to 10 recorded requests
    ("openrouter", "claude-sonnet-4-6"): {"text": 1.143, "request": 5.0, "message": 2.6, "call":
        30.9, "tools": 444.1, "forced": 95.7, "tool": 15.0, "node": 18.5, "format": 55.3,
        "format_node": 43.0, "thinking": 1.202, "signature": 0.0, "image": 1000, "page": 1600},
    # fitted to 4 recorded requests
    ("openai/", "gpt-4"): {"text": 1.011, "request": 3.2, "message": 3.0, "tools": 15.5,
        "forced": 2.1, "tool": 0.1, "node": 5.1},
    # fitted to 10 recorded requests
    ("chatgpt-codex/", "gpt-5"): {"text": 0.976, "request": 1.3, "message": 4.7, "call": 6.0,
        "tools": 17.9, "forced": 1.9, "tool": 0.7, "node": 5.8, "format": 8.1, "format_node":
        5.8, "thinking": 1.057, "signature": 0.104},
    # fitted to 4 recorded requests
    ("ollama/chat", "llama"): {"text": 0.911, "request": 8.0, "message": 2.6, "call": 7.5,
        "tools": 163.0, "tool": 19.1, "node": 12.2, "format": 0, "format_node": 0},
    # fitted to 104 recorded requests
    ("openai/chat", "gpt-5"): {"text": 1.104, "request": 1.2, "message": 4.7, "call": 6.3,
        "tools": 30.6, "forced": 1.9, "tool": 1.6, "node": 8.2, "format": 8.4, "format_node":
        6.2, "thinking": 1.057, "signature": 0.104},
    # fitted to 21 recorded requests
    ("openai/chat", "gpt-4"): {"text": 1.014, "request": 3.7, "message": 3.5, "tools": 16.0,
        "forced": 2.2, "tool": 0.2, "node": 5.3},
    # fitted to 7 recorded requests
    ("azure/chat", "gpt-5"): {"text": 1.263, "request": 1.1, "message": 4.3, "call": 6.0,
        "tools": 20.6, "forced": 1.9, "tool": 0.9, "node": 6.6, "format": 8.1, "format_node":
        5.8, "thinking": 1.057, "signature": 0.104},
    # fitted to 8 recorded requests
    ("together/chat", "llama"): {"text": 1.261, "request": 18.1, "message": 4.5, "call": 7.5,
        "tools": 124.0, "tool": 18.5, "node": 11.7, "format": 0, "format_node": 0},
    # fitted to 9 recorded requests
    ("venice/chat", "stral"): {"text": 1.634, "request": 2.7, "message": 0.2, "call": 4.6,
        "tools": 13.4, "forced": 2.7, "tool": 7.7, "node": 11.3, "format": 0, "format_node": 0},
    # fitted to 230 recorded requests
    ("openai/", "gpt-4o"): {"text": 1.015, "request": 3.4, "message": 3.9, "call": 5.8, "tools":
        10.9, "forced": 2.5, "node": 5.1, "format": 10.0, "format_node": 9.5},
    # fitted to 30 recorded requests
    ("vertex/gemini", "gemini"): {"text": 0.844, "request": 0.0, "message": 0.1, "call": 2.7,
        "tools": 0.0, "forced": 0, "tool": 0.6, "node": 5.2, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.003, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 53 recorded requests
    ("openai/", "gpt-4-1"): {"text": 0.988, "request": 3.5, "message": 3.7, "call": 4.8,
        "tools": 13.9, "forced": 2.3, "node": 4.5},
    # fitted to 7 recorded requests
    ("deepseek/", "deepseek"): {"text": 1.108, "request": 2.8, "message": 2.8, "call": 12.7,
        "tools": 274.3, "tool": 9.1, "node": 20.5, "format": 0, "format_node": 0, "thinking":
        1.065},
    # fitted to 13 recorded requests
    ("databricks/chat", "claude-3"): {"text": 1.195, "request": 4.9, "message": 1.7, "call":
        26.1, "tools": 309.3, "forced": -31.4, "tool": 14.5, "node": 21.4, "format": 60.1,
        "format_node": 51.7, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 82 recorded requests
    ("deepseek/chat", "deepseek"): {"text": 1.089, "request": 2.1, "message": 1.7, "call": 13.7,
        "tools": 213.6, "tool": 8.9, "node": 18.9, "format": 0, "format_node": 0, "thinking":
        1.118},
    # fitted to 19 recorded requests
    ("vertex/gemini", "gemini-2"): {"text": 0.921, "request": 1.0, "message": 0.5, "call": 2.4,
        "tools": 0.0, "forced": 0, "tool": 0.5, "node": 5.1, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.003, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 8 recorded requests
    ("vertex/gemini", "gemini-2-0"): {"text": 0.865, "request": 0.7, "message": 0.5, "call":
        2.4, "tools": 0.0, "forced": 0, "tool": 0.5, "node": 5.1, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.003, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 7 recorded requests
    ("anthropic/claude", "claude-opus-4-8"): {"text": 1.367, "request": 6.3, "message": 2.1,
        "call": 27.2, "tools": 268.6, "forced": 115, "tool": 14.3, "node": 20.5, "format": 54,
        "format_node": 40.7, "thinking": 1.5, "signature": 0, "image": 2500, "page": 1600},
}
# fmt: on
"""By a part of the name of a host or format, and a part of the name of a model."""

SLACK = 100.0
"""Tokens that a bound leaves beside its factor."""

BOUNDS: dict[str, tuple[float, float | None]] = {
    "text": (0.97, 1.07),
    "tools": (0.97, 1.53),
    "schema": (0.95, 1.35),
    "images": (0.1, None),
    "documents": (0.2, None),
    "sound and video": (0.01, 3.67),
    "hosted tools": (0.21, None),
}
"""The factors of the lower and the upper bound, by the kind of a request."""
