"""A packed row must give what separate forward passes give, and transformers' own rope positions."""

import numpy as np
import torch
from ssr_trainer.loss import LossSettings, forward_turns, score, selection_loss, sft_loss
from ssr_trainer.packing import collate, mrope_positions


def separate_log_probs(untrained, prefix: list[int], tail: list[int], images) -> torch.Tensor:
    """One transformers pass over prefix + tail with its own masks and positions."""
    ids = torch.tensor([prefix + tail])
    extra = {}
    if images:
        extra = {
            "pixel_values": torch.from_numpy(np.concatenate([image.patches for image in images])),
            "image_grid_thw": torch.tensor([image.grid for image in images]),
            "mm_token_type_ids": (ids == untrained.encoder.pad_id).int(),
        }
    logits = untrained.model(input_ids=ids, use_cache=False, **extra).logits[0]
    wanted = torch.log_softmax(logits[len(prefix) - 1 : -1], -1)
    return wanted.gather(1, torch.tensor(tail)[:, None])[:, 0]


def image_count(ids: list[int], untrained) -> int:
    return sum(token == untrained.encoder.ids("<|vision_start|>")[0] for token in ids)


@torch.no_grad()
def test_packed_loss_equals_separate_forward_passes(untrained) -> None:
    settings, library = LossSettings(tau=0.3), untrained.encoder.library
    for trajectory in untrained.encoded:
        row = untrained.pack(trajectory)
        packed = sft_loss(forward_turns(untrained.model, collate([row], 0), settings.alpha), settings)
        selection = action = candidate = torch.zeros(())
        history = list(trajectory.prompt)
        for turn in trajectory.turns:
            images = trajectory.images[: image_count(history, untrained)]
            log_probs = [separate_log_probs(untrained, history, list(c.ids), images) for c in library.candidates]
            scores = torch.stack([score(values, settings.alpha) for values in log_probs])
            selection = selection + selection_loss(scores, turn.chosen, settings.tau)
            candidate = candidate - log_probs[turn.chosen].mean()
            history += library.candidates[turn.chosen].ids
            action = action - separate_log_probs(untrained, history, turn.action, images).mean()
            history += [*turn.action, *turn.observation]
        total = selection + action + settings.candidate_language_model * candidate
        assert abs(float(packed.total - total)) < 1e-5 * max(1.0, float(total)), trajectory.id


@torch.no_grad()
def test_padding_to_a_batch_changes_nothing(untrained) -> None:
    rows = [untrained.pack(trajectory) for trajectory in untrained.encoded[:4]]
    together = forward_turns(untrained.model, collate(rows, 0), 1.0)
    for row, batched in zip(rows, together, strict=True):
        alone = forward_turns(untrained.model, collate([row], 0), 1.0)[0]
        for one, other in zip(alone, batched, strict=True):
            torch.testing.assert_close(one.scores, other.scores, atol=1e-5, rtol=0)


def test_positions_equal_transformers(untrained) -> None:
    for trajectory in untrained.encoded:
        ids = list(trajectory.prompt) + [token for turn in trajectory.turns for token in (*turn.action, *turn.observation)]
        positions, following = mrope_positions(np.array(ids), trajectory.images, untrained.encoder.pad_id, 2)
        grids = torch.tensor([image.grid for image in trajectory.images]) if trajectory.images else None
        tokens = torch.tensor([ids])
        wanted, delta = untrained.model.model.get_rope_index(
            tokens, (tokens == untrained.encoder.pad_id).int(), image_grid_thw=grids
        )
        assert np.array_equal(positions, wanted[:, 0].numpy())
        assert following[-1] == len(ids) + int(delta)


def test_each_token_is_packed_once(untrained) -> None:
    """History and actions once, every candidate of a branched turn once: no token is computed twice."""
    lengths = [len(candidate.ids) for candidate in untrained.encoder.library.candidates]
    for trajectory in untrained.encoded:
        row = untrained.pack(trajectory)
        floor = len(trajectory.prompt) + sum(len(t.action) + len(t.observation) + sum(lengths) for t in trajectory.turns)
        assert len(row.ids) == floor
