"""One update of Algorithm 2: a minibatch of rollouts becomes one optimizer step.

Each process takes its share of every pass; the passes of all processes are equally many, so that they meet at the same
gradient averaging. Losses are divided by the trajectories of the whole minibatch, wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from .loss import score
from .objectives import Statistics, TurnLogProbs, advantages, trajectory_loss
from .packing import PackedRow, collate
from .rl_config import RlConfig
from .rl_policy import TokenScorer, wanted_spans
from .rl_rows import RowPacker
from .rollouts import Header, Minibatch, Rollout


class Diverged(Exception):
    """The loss or the gradient is no number; the weights have not been touched."""


@dataclass(frozen=True)
class Sample:
    rollout: Rollout
    advantage: float
    row: PackedRow


@dataclass(frozen=True)
class Update:
    """What one step is made with; `reference` is the frozen model, None without a KL term."""

    accelerator: Accelerator
    policy: torch.nn.Module
    reference: TokenScorer | None
    optimiser: torch.optim.Optimizer
    packer: RowPacker
    config: RlConfig


def apply_minibatch(update: Update, minibatch: Minibatch, step: int) -> dict[str, float]:
    """Changes the weights once and returns what to log. Throws Diverged before a step that would spoil them."""
    config, accelerator = update.config, update.accelerator
    samples, figures = prepare_samples(minibatch, update.packer, config)
    statistics, loss = Statistics(), 0.0
    trajectories = max(1.0, figures["trajectories"])
    passes = share_passes(
        [sample.row for sample in samples], config.rows_per_pass, accelerator.process_index, accelerator.num_processes
    )
    for number, own in enumerate(passes):
        synchronised = number + 1 == len(passes)
        with nullcontext() if synchronised else accelerator.no_sync(update.policy):
            chosen = [samples[index] for index in own.indices]
            part = batch_loss(update, chosen, minibatch.header, statistics if own.counts else Statistics())
            # Gradients are averaged over the processes, the loss is a sum over them.
            accelerator.backward(part * (accelerator.num_processes / trajectories if own.counts else 0.0))
            loss += float(part.detach()) / trajectories if own.counts else 0.0
    gathered = gather_object([(statistics, loss)])
    loss = sum(value for _, value in gathered)
    norm = float(accelerator.clip_grad_norm_(update.policy.parameters(), config.optimiser.clip_norm)) if passes else 0.0
    if not all(torch.isfinite(torch.tensor([loss, norm]))):
        raise Diverged(f"expected finite numbers at step {step}, got loss {loss} and gradient norm {norm}")
    for group in update.optimiser.param_groups:
        group["lr"] = config.optimiser.rate(step)
    if passes:
        update.optimiser.step()
    update.optimiser.zero_grad(set_to_none=True)
    return {"loss": loss, "gradient_norm": norm, **figures, **summarise([s for s, _ in gathered], trajectories, config)}


def prepare_samples(minibatch: Minibatch, packer: RowPacker, config: RlConfig) -> tuple[list[Sample], dict[str, float]]:
    """Trajectories that can move the weights: with a verdict, with a turn, and with an advantage (or a KL term)."""
    rollouts, header = minibatch.rollouts, minibatch.header
    if (header.reasoning == "freeform") != (config.reasoning == "freeform"):
        raise ValueError(f"expected rollouts with reasoning {config.reasoning!r}, got {header.reasoning!r}")
    values, flat = advantages([r.reward for r in rollouts], [r.question for r in rollouts], config.objective.advantage_floor)
    masked = sum(rollout.reward is None for rollout in rollouts)
    samples = [
        Sample(rollout, float(value), packer.row(rollout, header, branches=config.recompute_scores))
        for rollout, value in zip(rollouts, values, strict=True)
        if rollout.reward is not None and rollout.turns and (value != 0 or config.objective.beta > 0)
    ]
    return samples, {
        "trajectories": float(len(rollouts) - masked),
        "masked": float(masked),
        "groups_without_spread": float(flat),
    }


@dataclass(frozen=True)
class Pass:
    """Rows of one process in one pass. Where there are too few for everybody it repeats one that does not count."""

    indices: list[int]
    counts: bool


def share_passes(rows: list[PackedRow], rows_per_pass: int, rank: int, processes: int) -> list[Pass]:
    """Rows of similar length together, to waste little padding; as many passes for every process."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index].ids))
    stride = rows_per_pass * processes
    passes = []
    for start in range(0, len(order), stride):
        shared = order[start : start + stride]
        own = shared[rank::processes]
        passes.append(Pass(own or shared[:1], bool(own)))
    return passes


def batch_loss(update: Update, samples: list[Sample], header: Header, statistics: Statistics) -> torch.Tensor:
    """Sum over the samples of - J + beta * KL; one forward pass gives the log-probs of all their turns."""
    settings, selected = update.config.objective, update.config.reasoning == "ssr"
    filler_id = int(samples[0].row.ids[0])  # masked away; an image_pad there would ask for a picture
    batch = collate([sample.row for sample in samples], filler_id)
    temperature = header.temperature or 1.0
    wanted, temperatures = wanted_spans([sample.row.turns for sample in samples], temperature, selected)
    current = iter(update.policy(batch, wanted, temperatures))
    frozen = None
    if update.reference is not None:
        with torch.no_grad():
            frozen = iter(update.reference(batch, wanted, temperatures))
    total = torch.zeros((), device=update.accelerator.device)
    for sample in samples:
        turns = [
            _turn(sample, number, header, current, frozen, update.config, statistics) for number in range(len(sample.rollout.turns))
        ]
        total = total + trajectory_loss(turns, sample.advantage, header.alpha, header.tau, settings, statistics)
    return total


def _turn(
    sample: Sample,
    number: int,
    header: Header,
    current: Iterator[torch.Tensor],
    frozen: Iterator[torch.Tensor] | None,
    config: RlConfig,
    statistics: Statistics,
) -> TurnLogProbs:
    """Takes this turn's spans from the streams of log-probs."""
    logged, packed = sample.rollout.turns[number], sample.row.turns[number]
    spans = sum(span is not None for span in packed.candidates) if config.reasoning == "ssr" else 0
    candidates = [next(current) for _ in range(spans)]
    action = next(current)
    if frozen is not None:
        for _ in range(spans):
            next(frozen)
    reference = None if frozen is None else next(frozen)
    values = (*(logged.written or ()), *logged.action_log_probs)
    old = torch.tensor(values, dtype=action.dtype, device=action.device)
    if logged.index is None:
        return TurnLogProbs(action, old, reference)
    chosen = candidates[logged.index] if config.recompute_scores else candidates[0]
    scores = torch.tensor(logged.scores, dtype=action.dtype, device=action.device)
    statistics.score_gaps.append(abs(float(score(chosen.detach(), header.alpha)) - logged.scores[logged.index]))
    if config.recompute_scores:
        scores = torch.stack([score(candidate.detach(), header.alpha) for candidate in candidates])
    return TurnLogProbs(action, old, reference, chosen, scores, logged.index, logged.log_q)


def summarise(parts: list[Statistics], trajectories: float, config: RlConfig) -> dict[str, float]:
    """Figures of a minibatch from the sums of all processes."""
    gaps = [gap for part in parts for gap in part.score_gaps]
    ratios, tokens = sum(part.ratios for part in parts), sum(part.tokens for part in parts)
    return {
        "turns_trained": float(sum(part.turns for part in parts)),
        "tokens_trained": float(tokens),
        "clip_fraction": sum(part.clipped for part in parts) / max(1, ratios),
        "largest_ratio_gap": max((part.largest_ratio_gap for part in parts), default=0.0),
        "kl": sum(part.kl for part in parts) / trajectories,
        "action_entropy": sum(part.negative_log_prob for part in parts) / max(1, tokens),
        "largest_score_gap": max(gaps, default=0.0),
        "score_alarms": float(sum(gap > config.noise_floor for gap in gaps)),
    }

