"""The dialect's strings, letter by letter; the TypeScript tests hold the same ones."""

from ssr_trainer import dialect


def test_parts_are_the_strings_of_the_contract() -> None:
    assert dialect.system_part("PROMPT") == "<|im_start|>system\nPROMPT<|im_end|>\n"
    vision = "<|vision_start|><|image_pad|><|vision_end|>"
    assert dialect.question_part("Q?", 2) == f"<|im_start|>user\nQ?\n{vision}{vision}<|im_end|>\n<|im_start|>assistant\n"
    assert dialect.question_part("Q?", 0) == "<|im_start|>user\nQ?\n<|im_end|>\n<|im_start|>assistant\n"
    assert dialect.reasoning_part("T") == "<thinking>T</thinking>"
    assert dialect.action_part("<answer> x</answer>") == "<answer> x</answer><|im_end|>"
    assert dialect.observation_part("1. B") == (
        "\n<|im_start|>user\n<tool_response>\n1. B\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


def test_tool_calls_use_python_separators() -> None:
    from micro_world.questions import tool_call

    assert tool_call("image_search_tool", {}) == '<tool_call>{"name": "image_search_tool", "arguments": {}}</tool_call>'
    assert tool_call("image_zoom_in_tool", {"bbox_2d": [0, 250, 250, 500], "label": "tile", "img_idx": 0}) == (
        '<tool_call>{"name": "image_zoom_in_tool", "arguments": '
        '{"bbox_2d": [0, 250, 250, 500], "label": "tile", "img_idx": 0}}</tool_call>'
    )
