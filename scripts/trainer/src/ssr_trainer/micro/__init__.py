"""The micro checkpoint: a tiny Qwen3-VL trained from scratch on the micro world."""
