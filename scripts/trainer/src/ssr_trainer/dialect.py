"""The strings of dialect `ssr`, as the TypeScript harness writes them: s, q, z, a and o of Algorithm 1."""

from __future__ import annotations

IM_START, IM_END = "<|im_start|>", "<|im_end|>"
VISION = "<|vision_start|><|image_pad|><|vision_end|>"
IMAGE_PAD = "<|image_pad|>"


def system_part(prompt: str) -> str:
    """s"""
    return f"{IM_START}system\n{prompt}{IM_END}\n"


def question_part(question: str, image_count: int) -> str:
    """q: the question first, then one image marker per picture, then the assistant's prefix."""
    return f"{IM_START}user\n{question}\n{VISION * image_count}{IM_END}\n{IM_START}assistant\n"


def reasoning_part(text: str) -> str:
    """z, with no newline before or after the tags."""
    return f"<thinking>{text}</thinking>"


def action_part(action: str) -> str:
    """a, with the end-of-turn token that stops its generation."""
    return f"{action}{IM_END}"


def observation_part(body: str) -> str:
    """o after an action that ended its turn."""
    return f"\n{IM_START}user\n<tool_response>\n{body}\n</tool_response>{IM_END}\n{IM_START}assistant\n"
