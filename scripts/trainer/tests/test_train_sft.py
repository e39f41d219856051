"""Runs of the training command: exact resume, learning, options for larger checkpoints, refused configurations."""

import json
import shutil

import torch
from PIL import Image
from ssr_trainer.config import load_config, read_settings, SftConfig
from ssr_trainer.micro import texts
from ssr_trainer.micro.stream import development_trajectories
from ssr_trainer.train_sft import train_from
import pytest


def write_dataset(folder, trajectories) -> None:
    """The JSONL form of a few trajectories, images as files."""
    def save(images, stem):
        names = []
        for number, image in enumerate(images):
            names.append(f"{stem}-{number}.png")
            Image.fromarray(image).save(folder / names[-1])
        return names

    with (folder / "data.jsonl").open("w") as lines:
        for t in trajectories:
            turns = [
                {
                    "reasoning": turn.reasoning,
                    "action": turn.action,
                    "observation": turn.observation
                    and {"text": turn.observation.text, "images": save(turn.observation.images, f"{t.id}-{k}")},
                }
                for k, turn in enumerate(t.turns)
            ]
            line = {"id": t.id, "question": t.question, "images": save(t.images, t.id), "turns": turns, "type": t.type}
            lines.write(json.dumps(line) + "\n")


def write_config(folder, model_folder, run: str) -> None:
    config = {
        "model": str(model_folder),
        "library": str(texts.LIBRARY),
        "system_prompt": str(texts.SYSTEM_PROMPT),
        "data": "data.jsonl",
        "held_out": "data.jsonl",
        "run": run,
        "threads": 1,
        "optimiser": {"steps": 4, "learning_rate": 1e-3, "warmup_steps": 2, "save_every": 2, "evaluate_every": 4},
        "batches": {"trajectories_per_step": 3, "rows_per_pass": 2, "branch_turns": "one"},
    }
    (folder / f"{run}.json").write_text(json.dumps(config))


def weights(folder) -> dict[str, torch.Tensor]:
    return torch.load(folder / "state.pt", weights_only=True)["model"]


def test_resumed_run_equals_unbroken_run(untrained, tmp_path) -> None:
    write_dataset(tmp_path, development_trajectories(8, 1, ["tile-fine", "fact-of-named", "general", "name"]))
    for run in ("unbroken", "broken"):
        write_config(tmp_path, untrained.folder, run)
    train_from(load_config(tmp_path / "unbroken.json"), tmp_path)
    broken = load_config(tmp_path / "broken.json")
    train_from(broken, tmp_path, stop_after=3)  # its last state is of step 2
    trained = train_from(broken, tmp_path)
    left, right = weights(tmp_path / "unbroken"), weights(tmp_path / "broken")
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert (tmp_path / "broken/curves.csv").read_text() == (tmp_path / "unbroken/curves.csv").read_text()
    assert (trained / "tokenizer.json").exists() and (trained / "model.safetensors").exists()
    assert not (tmp_path / "broken/state.pt.part").exists()


def test_training_lowers_the_loss(untrained, tmp_path) -> None:
    write_dataset(tmp_path, development_trajectories(8, 1, ["general", "colour"]))
    write_config(tmp_path, untrained.folder, "short")
    raw = json.loads((tmp_path / "short.json").read_text())
    raw["optimiser"] = {"steps": 30, "learning_rate": 3e-3, "warmup_steps": 2, "evaluate_every": 30}
    config = read_settings(SftConfig, raw, "test")
    train_from(config, tmp_path)
    losses = [float(line.split(",")[3]) for line in (tmp_path / "short/curves.csv").read_text().splitlines()[1:]]
    assert losses[-1] < 0.2 * losses[0]
    evaluation = json.loads((tmp_path / "short/evaluations.jsonl").read_text().splitlines()[-1])
    assert evaluation["success"] == 1.0
    shutil.rmtree(tmp_path / "short")


def test_options_for_larger_checkpoints(untrained, tmp_path) -> None:
    """bfloat16, frozen vision, recomputed activations and all branches: the text changes, the vision tower does not."""
    write_dataset(tmp_path, development_trajectories(8, 1, ["tile-fine", "general"]))
    write_config(tmp_path, untrained.folder, "large")
    raw = json.loads((tmp_path / "large.json").read_text())
    raw |= {"dtype": "bfloat16", "freeze_vision": True, "gradient_checkpointing": True}
    raw["batches"] = {"trajectories_per_step": 2, "rows_per_pass": 1, "branch_turns": "all"}
    train_from(read_settings(SftConfig, raw, "test"), tmp_path)
    before, after = untrained.model.state_dict(), weights(tmp_path / "large")
    for name, weight in after.items():
        assert weight.dtype == torch.bfloat16
        if ".visual." in name:
            assert torch.equal(weight, before[name].bfloat16()), name
    name = "model.language_model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(after[name], before[name].bfloat16())


def test_unknown_and_missing_keys_are_named() -> None:
    with pytest.raises(ValueError, match="unknown key 'rum'"):
        read_settings(SftConfig, {"rum": 1}, "x.json")
    with pytest.raises(ValueError, match="missing key 'model'"):
        read_settings(SftConfig, {"library": "l"}, "x.json")
