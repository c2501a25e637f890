"""Rates of token estimates, and their bounds. Written by `scripts/token_rates.py`."""

# fmt: off
FITTED: dict[tuple[str, str], dict[str, float]] = {
    # fitted to 57 recorded requests
    ("", ""): {"text": 1.062, "request": 2.9, "message": 2.8, "tools": 15.6, "tool": 0.1,
        "node": 5.0, "format": 6.6, "format_node": 0.4},
    # fitted to 9 recorded requests
    ("", "glm"): {"text": 0.917, "request": 4.4, "message": 5.2, "call": 7.5, "tools": 73.2,
        "tool": 20.5, "node": 15.5, "format": 0, "format_node": 0, "thinking": 1.003},
    # fitted to 105 recorded requests
    ("", "qwen"): {"text": 1.042, "request": 3.8, "message": 4.5, "call": 7.8, "tools": 71.8,
        "forced": 2.1, "tool": 19.2, "node": 13.9, "format": 0, "format_node": 0, "thinking":
        1.027},
    # fitted to 46 recorded requests
    ("", "grok"): {"text": 1.359, "request": 82.7, "message": 4.0, "call": 5.2, "tools": 30.9,
        "forced": 2.2, "tool": 0.3, "node": 11.7, "thinking": 0.948},
    # fitted to 1791 recorded requests
    ("", "gpt-4"): {"text": 1.005, "request": 3.1, "message": 4.0, "call": 4.7, "tools": 13.5,
        "forced": 2.6, "node": 5.4, "format": 8.1, "format_node": 10.9},
    # fitted to 315 recorded requests
    ("", "gpt-5"): {"text": 1.045, "request": 1.6, "message": 4.5, "call": 5.8, "tools": 14.0,
        "forced": 1.9, "node": 5.2, "format": 7.8, "format_node": 5.4, "thinking": 1.055,
        "signature": 0.104},
    # fitted to 64 recorded requests
    ("", "llama"): {"text": 0.984, "request": 6.6, "call": 7.0, "tools": 176.3, "tool": 18.0,
        "node": 9.4, "format": 0, "format_node": 0},
    # fitted to 122 recorded requests
    ("", "stral"): {"text": 1.29, "request": 2.7, "message": 0.0, "call": 4.6, "tools": 13.1,
        "forced": 2.7, "tool": 7.5, "node": 10.8, "format": 0, "format_node": 0},
    # fitted to 1444 recorded requests
    ("", "gpt-4o"): {"text": 1.008, "request": 3.1, "message": 3.9, "tools": 13.0, "forced":
        2.3, "node": 5.4, "format": 8.0, "format_node": 10.8},
    # fitted to 586 recorded requests
    ("", "gemini"): {"text": 1.09, "request": 0.0, "message": 1.1, "call": 2.9, "tools": 0.2,
        "forced": 0.4, "tool": 2.0, "node": 10.6, "format": 0, "format_node": 0, "thinking":
        1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520, "second":
        25},
    # fitted to 917 recorded requests
    ("", "claude"): {"text": 1.158, "request": 4.4, "message": 2.3, "call": 24.3, "tools":
        480.6, "forced": 85.4, "tool": 14.4, "node": 17.5, "format": 52.9, "format_node": 41.2,
        "thinking": 1.529, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 310 recorded requests
    ("", "gpt-4-1"): {"text": 0.993, "request": 3.5, "call": 4.3, "tools": 15.6, "forced": 2.3,
        "node": 4.8, "format": 9.4, "format_node": 13.4},
    # fitted to 14 recorded requests
    ("", "gpt-oss"): {"request": 65.2, "tools": 15.2, "node": 12.3},
    # fitted to 58 recorded requests
    ("", "gpt-3-5"): {"text": 1.058, "request": 3.7, "message": 3.5, "call": 5.4, "tools": 15.9,
        "tool": 0.1, "node": 5.3},
    # fitted to 15 recorded requests
    ("", "llama-4"): {"text": 1.003, "request": 30.2, "message": 4.0, "call": 7.5, "tools":
        618.9, "tool": 19.7, "node": 14.4, "format": 0, "format_node": 0},
    # fitted to 116 recorded requests
    ("", "deepseek"): {"text": 0.287, "request": 3.3, "message": 4.1, "call": 11.9, "tools":
        239.2, "forced": 1.7, "tool": 9.4, "node": 24.1, "format": 0, "format_node": 0,
        "thinking": 1.059},
    # fitted to 465 recorded requests
    ("", "gemini-2"): {"text": 1.052, "request": 0.0, "message": 0.9, "call": 7.0, "tools": 2.0,
        "forced": 0.4, "tool": 6.4, "node": 8.9, "format": 0, "format_node": 0, "thinking":
        1.189, "signature": 0.019, "keeps_thinking": True, "image": 258, "page": 258, "second":
        32},
    # fitted to 86 recorded requests
    ("", "claude-3"): {"text": 1.02, "request": 4.7, "message": 2.3, "call": 27.3, "tools":
        310.8, "forced": -31.4, "tool": 14.5, "node": 21.4, "format": 56.9, "format_node": 45.6,
        "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 28 recorded requests
    ("", "anthropic"): {"text": 1.148, "request": 4.9, "message": 1.7, "call": 28.6, "tools":
        362.3, "forced": 115, "tool": 14.5, "node": 20.8, "format": 54, "format_node": 40.7,
        "thinking": 1.525, "signature": 0, "image": 2500, "page": 1600},
    # fitted to 103 recorded requests
    ("", "gemini-2-0"): {"text": 1.04, "request": 0.0, "message": 0.1, "call": 1.3, "tools":
        2.0, "forced": -0.2, "tool": 0.9, "node": 0.4, "format": 0, "format_node": 0,
        "thinking": 1.1, "signature": 0.0, "keeps_thinking": True, "image": 1290, "page": 258,
        "second": 32},
    # fitted to 816 recorded requests
    ("", "gpt-4o-mini"): {"text": 1.006, "request": 3.2, "message": 3.9, "call": 4.8, "tools":
        11.3, "forced": 2.1, "node": 5.7, "format": 7.7, "format_node": 11.1, "image": 14000},
    # fitted to 18 recorded requests
    ("", "claude-opus-4"): {"text": 1.327, "request": 6.6, "message": 3.1, "call": 28.1,
        "tools": 373.3, "forced": -31.3, "tool": 14.6, "node": 21.8, "format": 55.6,
        "format_node": 44.3, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 268 recorded requests
    ("", "claude-haiku-4"): {"text": 1.132, "request": 4.9, "message": 1.7, "call": 28.9,
        "tools": 480.3, "forced": 99.6, "tool": 14.5, "node": 22.5, "format": 50.1,
        "format_node": 35.3, "thinking": 1.216, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 512 recorded requests
    ("", "claude-sonnet-4"): {"text": 1.161, "request": 4.9, "message": 2.2, "call": 24.7,
        "tools": 361.6, "forced": -37.3, "tool": 15.0, "node": 19.0, "format": 60.6,
        "format_node": 41.6, "thinking": 1.22, "signature": 0.0, "image": 1000, "page": 1600},
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
    # fitted to 126 recorded requests
    ("", "claude-sonnet-4-5"): {"text": 1.133, "request": 6.1, "message": 3.6, "call": 27.1,
        "tools": 488.7, "forced": 99.7, "tool": 14.1, "node": 18.9, "format": 58.1,
        "format_node": 40.8, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 160 recorded requests
    ("", "claude-sonnet-4-6"): {"text": 1.048, "request": 5.1, "message": 2.6, "call": 30.7,
        "tools": 490.0, "forced": 95.8, "tool": 15.0, "node": 18.7, "format": 55.3,
        "format_node": 42.9, "thinking": 1.2, "signature": 0.0, "image": 1000, "page": 1600},
    # fitted to 48 recorded requests
    ("chat", ""): {"text": 1.066, "request": 2.9, "message": 2.7, "tools": 15.9, "tool": 0.1,
        "node": 5.0, "format": 5.7, "format_node": 0.0},
    # fitted to 21 recorded requests
    ("openrouter", ""): {"text": 1.069, "request": 2.8, "message": 2.2, "tools": 15.6, "tool":
        0.1, "node": 5.0, "format": 5.7, "format_node": 0.0},
    # fitted to 9 recorded requests
    ("chat", "glm"): {"text": 0.883, "message": 4.8, "call": 7.5, "tools": 77.2, "tool": 20.8,
        "node": 15.9, "format": 0, "format_node": 0, "thinking": 0.996},
    # fitted to 4 recorded requests
    ("mistralrs", "qwen"): {"text": 1.001, "request": 3.8, "message": 4.5, "call": 7.8, "tools":
        71.8, "forced": 2.1, "tool": 19.2, "node": 13.9, "format": 0, "format_node": 0,
        "thinking": 1.027},
    # fitted to 45 recorded requests
    ("xai", "grok"): {"text": 1.052, "request": 142.4, "message": 4.2, "call": 5.1, "tools":
        36.0, "forced": 2.3, "tool": 0.4, "node": 13.0, "thinking": 0.893},
    # fitted to 13 recorded requests
    ("ollama", "qwen"): {"text": 1.063, "request": 4.1, "message": 4.8, "call": 7.7, "tools":
        70.6, "forced": 2.1, "tool": 18.7, "node": 13.1, "format": 0, "format_node": 0,
        "thinking": 0.975},
    # fitted to 44 recorded requests
    ("llamacpp", "qwen"): {"text": 0.997, "request": 3.4, "message": 4.7, "call": 7.9, "tools":
        78.7, "forced": 2.1, "tool": 20.1, "node": 15.7, "format": 0, "format_node": 0,
        "thinking": 1.04},
    # fitted to 11 recorded requests
    ("venice", "qwen"): {"text": 1.23, "request": 3.8, "message": 4.5, "call": 7.8, "tools":
        72.0, "forced": 2.1, "tool": 19.2, "node": 13.9, "format": 0, "format_node": 0,
        "thinking": 1.027},
    # fitted to 10 recorded requests
    ("azure", "gpt-5"): {"text": 1.265, "request": 1.0, "message": 3.7, "call": 5.9, "tools":
        14.5, "forced": 1.9, "tool": 0.1, "node": 5.5, "format": 7.8, "format_node": 5.4,
        "thinking": 1.055, "signature": 0.104},
    # fitted to 4 recorded requests
    ("local", "gpt-5"): {"text": 1.106, "request": 1.8, "message": 4.7, "call": 5.8, "tools":
        14.0, "forced": 1.9, "node": 5.2, "format": 7.8, "format_node": 5.4, "thinking": 1.055,
        "signature": 0.104},
    # fitted to 9 recorded requests
    ("openrouter", "gpt-5"): {"text": 1.126, "request": 1.4, "message": 4.0, "call": 5.8,
        "tools": 14.9, "forced": 1.9, "tool": 0.1, "node": 5.3, "format": 7.8, "format_node":
        5.4, "thinking": 1.055, "signature": 0.104},
    # fitted to 120 recorded requests
    ("chat", "gpt-5"): {"text": 1.129, "request": 1.5, "message": 4.3, "call": 6.2, "tools":
        19.1, "forced": 1.9, "tool": 0.8, "node": 6.6, "format": 8.0, "format_node": 5.7,
        "thinking": 1.055, "signature": 0.104},
    # fitted to 8 recorded requests
    ("huggingface", "llama"): {"text": 1.294, "request": 6.9, "message": 4.3, "call": 7.0,
        "tools": 201.7, "tool": 18.4, "node": 9.6, "format": 0, "format_node": 0},
    # fitted to 8 recorded requests
    ("together", "llama"): {"text": 1.197, "request": 7.7, "message": 4.4, "call": 7.0, "tools":
        150.1, "tool": 17.7, "node": 9.3, "format": 0, "format_node": 0},
    # fitted to 9 recorded requests
    ("venice", "stral"): {"text": 1.445, "request": 2.7, "message": 0.1, "call": 4.6, "tools":
        13.3, "forced": 2.7, "tool": 7.6, "node": 11.3, "format": 0, "format_node": 0},
    # fitted to 15 recorded requests
    ("openrouter", "gemini"): {"text": 0.896, "request": 0.0, "message": 0.9, "call": 3.3,
        "tools": 0.0, "forced": 0.2, "tool": 1.4, "node": 3.7, "format": 0, "format_node": 0,
        "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 91 recorded requests
    ("openrouter", "gpt-4o"): {"text": 0.989, "request": 2.9, "message": 4.3, "call": 5.7,
        "tools": 12.6, "forced": 2.3, "node": 4.5, "format": 7.5, "format_node": 9.2},
    # fitted to 18 recorded requests
    ("chat", "gemini"): {"text": 0.879, "request": 0.0, "message": 0.9, "call": 3.4, "tools":
        0.0, "forced": 0.2, "tool": 1.6, "node": 4.0, "format": 0, "format_node": 0, "thinking":
        1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520, "second":
        25},
    # fitted to 46 recorded requests
    ("chat", "claude"): {"text": 1.163, "request": 4.6, "message": 1.9, "call": 24.0, "tools":
        351.3, "forced": 85.4, "tool": 14.3, "node": 17.5, "format": 55.6, "format_node": 46.2,
        "thinking": 1.561, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 13 recorded requests
    ("databricks", "claude"): {"text": 1.187, "request": 4.4, "message": 2.0, "call": 23.5,
        "tools": 320.5, "forced": 85.4, "tool": 14.3, "node": 17.3, "format": 55.6,
        "format_node": 46.2, "thinking": 1.529, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 509 recorded requests
    ("google", "gemini"): {"text": 1.091, "request": 0.0, "message": 1.1, "call": 4.0, "tools":
        0.8, "forced": 0.8, "tool": 2.6, "node": 10.5, "format": 0, "format_node": 0,
        "thinking": 1.182, "signature": 0.04, "keeps_thinking": True, "image": 1090, "page":
        520, "second": 25},
    # fitted to 57 recorded requests
    ("vertex", "gemini"): {"text": 0.916, "request": 0.3, "message": 0.7, "call": 2.9, "tools":
        0.0, "forced": 0.4, "tool": 0.6, "node": 5.0, "format": 0, "format_node": 0, "thinking":
        1.155, "signature": 0.001, "keeps_thinking": True, "image": 1090, "page": 520, "second":
        25},
    # fitted to 6 recorded requests
    ("groq", "gpt-oss"): {"text": 0.993, "request": 67.7, "tools": 15.2, "node": 12.3},
    # fitted to 17 recorded requests
    ("openrouter", "gpt-4-1"): {"text": 1.028, "request": 3.5, "message": 3.4, "call": 3.8,
        "tools": 17.1, "forced": 2.5, "tool": 0.2, "node": 4.8, "format": 9.4, "format_node":
        13.4},
    # fitted to 89 recorded requests
    ("deepseek", "deepseek"): {"text": 0.906, "request": 2.1, "message": 3.0, "call": 13.8,
        "tools": 220.5, "forced": 1.7, "tool": 9.3, "node": 23.1, "format": 0, "format_node": 0,
        "thinking": 1.119},
    # fitted to 18 recorded requests
    ("chat", "gemini-2"): {"text": 0.906, "request": 0.0, "message": 0.7, "call": 3.9, "tools":
        0.0, "forced": -0.0, "tool": 1.3, "node": 3.0, "format": 0, "format_node": 0,
        "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 14 recorded requests
    ("openrouter", "gemini-2"): {"text": 0.946, "request": 0.0, "message": 0.7, "call": 3.7,
        "tools": 0.0, "forced": -0.0, "tool": 1.0, "node": 2.7, "format": 0, "format_node": 0,
        "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 20 recorded requests
    ("chat", "claude-3"): {"text": 1.205, "request": 4.7, "message": 1.8, "call": 23.2, "tools":
        316.8, "forced": 85.4, "tool": 14.2, "node": 17.4, "format": 58.6, "format_node": 52.5,
        "thinking": 1.561, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 12 recorded requests
    ("ollama", "deepseek"): {"text": 0.382, "request": 2.7, "message": 2.2, "call": 11.9,
        "tools": 239.2, "forced": 1.7, "tool": 9.4, "node": 24.1, "format": 0, "format_node": 0,
        "thinking": 1.059},
    # fitted to 13 recorded requests
    ("databricks", "claude-3"): {"text": 1.218, "request": 4.5, "message": 1.8, "call": 22.9,
        "tools": 315.5, "forced": 85.4, "tool": 14.3, "node": 17.3, "format": 58.6,
        "format_node": 52.5, "thinking": 1.529, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 5 recorded requests
    ("huggingface", "deepseek"): {"text": 0.024, "request": 1.7, "message": 2.5, "call": 11.9,
        "tools": 0.0, "forced": 1.6, "tool": 9.0, "node": 16.2, "format": 0, "format_node": 0,
        "thinking": 1.059},
    # fitted to 13 recorded requests
    ("chat", "gemini-2-0"): {"text": 0.976, "request": 0.0, "message": 0.5, "call": 4.2,
        "tools": 0.0, "forced": -0.2, "tool": 1.0, "node": 2.2, "format": 0, "format_node": 0,
        "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 13 recorded requests
    ("openrouter", "gemini-2-0"): {"text": 1.001, "request": 0.0, "message": 0.5, "call": 3.9,
        "tools": 0.0, "forced": -0.2, "tool": 0.7, "node": 2.0, "format": 0, "format_node": 0,
        "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 81 recorded requests
    ("google", "gemini-2-0"): {"text": 1.031, "request": 0.0, "message": 0.0, "call": 2.8,
        "tools": 0.1, "forced": 0.7, "tool": 1.7, "node": 0.8, "format": 0, "format_node": 0,
        "thinking": 1.182, "signature": 0.037, "keeps_thinking": True, "image": 1090, "page":
        520, "second": 25},
    # fitted to 14 recorded requests
    ("azure", "gpt-4o-mini"): {"text": 1.037, "request": 3.1, "message": 3.9, "call": 4.8,
        "tools": 11.4, "forced": 2.1, "node": 5.7, "format": 7.8, "format_node": 11.9, "image":
        14000},
    # fitted to 18 recorded requests
    ("claude", "claude-opus-4"): {"text": 1.438, "request": 6.1, "message": 2.4, "call": 27.8,
        "tools": 459.4, "forced": -30.7, "tool": 14.7, "node": 22.9, "format": 57.3,
        "format_node": 48.5, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 18 recorded requests
    ("anthropic", "claude-opus-4"): {"text": 1.438, "request": 6.1, "message": 2.4, "call":
        27.8, "tools": 459.4, "forced": -30.7, "tool": 14.7, "node": 22.9, "format": 57.3,
        "format_node": 48.5, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 6 recorded requests
    ("chat", "claude-haiku-4"): {"text": 1.056, "request": 4.2, "message": 1.0, "call": 24.2,
        "tools": 361.4, "forced": 85.4, "tool": 14.3, "node": 17.6, "format": 55.6,
        "format_node": 46.2, "thinking": 1.588, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 6 recorded requests
    ("openrouter", "claude-haiku-4"): {"text": 1.047, "request": 4.5, "message": 0.9, "call":
        29.3, "tools": 497.9, "forced": 99.6, "tool": 14.5, "node": 22.6, "format": 50.1,
        "format_node": 35.3, "thinking": 1.232, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 19 recorded requests
    ("chat", "claude-sonnet-4"): {"text": 1.157, "request": 4.7, "message": 1.6, "call": 24.2,
        "tools": 430.8, "forced": 85.4, "tool": 14.4, "node": 17.8, "format": 55.6,
        "format_node": 46.2, "thinking": 1.567, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 4 recorded requests
    ("claude", "claude-opus-4-6"): {"text": 1.368, "request": 5.9, "message": 2.2, "call": 27.8,
        "tools": 561.3, "forced": -30.2, "tool": 14.8, "node": 23.7, "format": 57.3,
        "format_node": 48.5, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 4 recorded requests
    ("anthropic", "claude-opus-4-6"): {"text": 1.368, "request": 5.9, "message": 2.2, "call":
        27.8, "tools": 561.3, "forced": -30.2, "tool": 14.8, "node": 23.7, "format": 57.3,
        "format_node": 48.5, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 7 recorded requests
    ("claude", "claude-opus-4-8"): {"text": 1.406, "request": 5.9, "message": 1.9, "call": 27.2,
        "tools": 380.8, "forced": -30.7, "tool": 14.6, "node": 22.7, "format": 57.3,
        "format_node": 48.5, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 7 recorded requests
    ("anthropic", "claude-opus-4-8"): {"text": 1.406, "request": 5.9, "message": 1.9, "call":
        27.2, "tools": 380.8, "forced": -30.7, "tool": 14.6, "node": 22.7, "format": 57.3,
        "format_node": 48.5, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 7 recorded requests
    ("claude", "claude-opus-4-7"): {"text": 1.537, "request": 6.1, "message": 2.4, "call": 28.0,
        "tools": 563.5, "forced": -30.6, "tool": 14.8, "node": 23.6, "format": 58.8,
        "format_node": 52.7, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 7 recorded requests
    ("anthropic", "claude-opus-4-7"): {"text": 1.537, "request": 6.1, "message": 2.4, "call":
        28.0, "tools": 563.5, "forced": -30.6, "tool": 14.8, "node": 23.6, "format": 58.8,
        "format_node": 52.7, "thinking": 1.2, "signature": 0, "image": 1000, "page": 1600},
    # fitted to 10 recorded requests
    ("openrouter", "claude-sonnet-4-6"): {"text": 1.141, "request": 5.1, "message": 2.7, "call":
        30.6, "tools": 443.6, "forced": 95.8, "tool": 15.0, "node": 18.6, "format": 55.3,
        "format_node": 42.9, "thinking": 1.2, "signature": 0.0, "image": 1000, "page": 1600},
    # fitted to 21 recorded requests
    ("openrouter/chat", ""): {"text": 1.069, "request": 2.8, "message": 2.2, "tools": 15.6,
        "tool": 0.1, "node": 5.0, "format": 5.7, "format_node": 0.0},
    # fitted to 10 recorded requests
    ("chatgpt-codex/", "gpt-5"): {"text": 0.985, "request": 1.6, "message": 4.4, "call": 6.2,
        "tools": 17.4, "forced": 1.9, "tool": 0.7, "node": 5.9, "format": 8.0, "format_node":
        5.7, "thinking": 1.055, "signature": 0.104},
    # fitted to 104 recorded requests
    ("openai/chat", "gpt-5"): {"text": 1.114, "request": 1.4, "message": 4.5, "call": 6.5,
        "tools": 29.1, "forced": 1.9, "tool": 1.6, "node": 8.5, "format": 8.2, "format_node":
        6.1, "thinking": 1.055, "signature": 0.104},
    # fitted to 8 recorded requests
    ("huggingface/chat", "llama"): {"text": 1.476, "request": 7.1, "message": 4.5, "call": 7.0,
        "tools": 235.0, "tool": 18.8, "node": 9.9, "format": 0, "format_node": 0},
    # fitted to 7 recorded requests
    ("azure/chat", "gpt-5"): {"text": 1.27, "request": 1.3, "message": 3.9, "call": 6.1,
        "tools": 19.8, "forced": 1.9, "tool": 0.9, "node": 6.8, "format": 8.0, "format_node":
        5.7, "thinking": 1.055, "signature": 0.104},
    # fitted to 8 recorded requests
    ("together/chat", "llama"): {"text": 1.502, "request": 9.2, "message": 5.0, "call": 7.0,
        "tools": 131.1, "tool": 17.4, "node": 9.2, "format": 0, "format_node": 0},
    # fitted to 9 recorded requests
    ("venice/chat", "stral"): {"text": 1.64, "request": 2.7, "message": 0.2, "call": 4.6,
        "tools": 13.5, "forced": 2.7, "tool": 7.7, "node": 11.8, "format": 0, "format_node": 0},
    # fitted to 14 recorded requests
    ("openrouter/chat", "gemini"): {"text": 0.946, "request": 0.0, "message": 0.7, "call": 3.7,
        "tools": 0.0, "forced": -0.0, "tool": 1.0, "node": 2.7, "format": 0, "format_node": 0,
        "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page": 520,
        "second": 25},
    # fitted to 13 recorded requests
    ("databricks/chat", "claude"): {"text": 1.218, "request": 4.5, "message": 1.8, "call": 22.9,
        "tools": 315.5, "forced": 85.4, "tool": 14.3, "node": 17.3, "format": 58.6,
        "format_node": 52.5, "thinking": 1.529, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 7 recorded requests
    ("deepseek/", "deepseek"): {"text": 1.019, "request": 2.3, "message": 3.4, "call": 15.2,
        "tools": 266.9, "forced": 1.7, "tool": 9.4, "node": 24.2, "format": 0, "format_node": 0,
        "thinking": 1.127},
    # fitted to 14 recorded requests
    ("openrouter/chat", "gemini-2"): {"text": 1.001, "request": 0.0, "message": 0.5, "call":
        3.9, "tools": 0.0, "forced": -0.2, "tool": 0.7, "node": 2.0, "format": 0, "format_node":
        0, "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page":
        520, "second": 25},
    # fitted to 12 recorded requests
    ("ollama/chat", "deepseek"): {"text": 0.483, "request": 2.5, "message": 0.7, "call": 11.9,
        "tools": 239.2, "forced": 1.7, "tool": 9.4, "node": 24.1, "format": 0, "format_node": 0,
        "thinking": 1.059},
    # fitted to 13 recorded requests
    ("databricks/chat", "claude-3"): {"text": 1.236, "request": 4.5, "message": 1.6, "call":
        22.4, "tools": 315.4, "forced": 85.4, "tool": 14.3, "node": 17.3, "format": 62.0,
        "format_node": 60.6, "thinking": 1.529, "signature": 0.0, "image": 2500, "page": 1600},
    # fitted to 82 recorded requests
    ("deepseek/chat", "deepseek"): {"text": 1.056, "request": 1.7, "message": 2.3, "call": 15.7,
        "tools": 212.5, "forced": 1.7, "tool": 9.1, "node": 20.1, "format": 0, "format_node": 0,
        "thinking": 1.181},
    # fitted to 5 recorded requests
    ("huggingface/chat", "deepseek"): {"text": 0.024, "request": 1.6, "message": 2.4, "call":
        11.9, "tools": 0.0, "forced": 1.4, "tool": 8.3, "node": 9.4, "format": 0, "format_node":
        0, "thinking": 1.059},
    # fitted to 13 recorded requests
    ("openrouter/chat", "gemini-2-0"): {"text": 1.031, "request": 0.0, "message": 0.3, "call":
        4.0, "tools": 0.0, "forced": -0.3, "tool": 0.5, "node": 1.7, "format": 0, "format_node":
        0, "thinking": 1.155, "signature": 0.0, "keeps_thinking": True, "image": 1090, "page":
        520, "second": 25},
    # fitted to 18 recorded requests
    ("anthropic/claude", "claude-opus-4"): {"text": 1.48, "request": 5.7, "message": 1.7,
        "call": 27.5, "tools": 568.1, "forced": -30.2, "tool": 14.8, "node": 24.0, "format":
        58.9, "format_node": 53.0, "thinking": 1.2, "signature": 0, "image": 1000, "page":
        1600},
    # fitted to 4 recorded requests
    ("anthropic/claude", "claude-opus-4-6"): {"text": 1.387, "request": 5.5, "message": 1.5,
        "call": 27.5, "tools": 579.7, "forced": -30.2, "tool": 14.8, "node": 24.1, "format":
        58.9, "format_node": 53.0, "thinking": 1.2, "signature": 0, "image": 1000, "page":
        1600},
    # fitted to 7 recorded requests
    ("anthropic/claude", "claude-opus-4-8"): {"text": 1.491, "request": 5.6, "message": 1.3,
        "call": 26.9, "tools": 447.8, "forced": -30.2, "tool": 14.7, "node": 23.8, "format":
        58.9, "format_node": 53.0, "thinking": 1.2, "signature": 0, "image": 1000, "page":
        1600},
    # fitted to 7 recorded requests
    ("anthropic/claude", "claude-opus-4-7"): {"text": 1.524, "request": 5.7, "message": 1.7,
        "call": 27.7, "tools": 666.4, "forced": -30.1, "tool": 14.9, "node": 24.5, "format":
        59.2, "format_node": 53.9, "thinking": 1.2, "signature": 0, "image": 1000, "page":
        1600},
}
# fmt: on
"""By a part of the name of a host or format, and a part of the name of a model."""

SLACK = 100.0
"""Tokens that a bound leaves beside its factor."""

BOUNDS: dict[str, tuple[float, float | None]] = {
    "text": (0.97, 1.07),
    "tools": (0.94, 2.1),
    "schema": (0.95, 1.23),
    "images": (0.1, 5.17),
    "documents": (0.2, None),
    "sound and video": (0.01, 3.67),
    "hosted tools": (0.21, None),
}
"""The factors of the lower and the upper bound, by the kind of a request."""
