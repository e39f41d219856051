"""Supervised training of selection-based structured reasoning (SSR) for Qwen3-VL checkpoints."""
