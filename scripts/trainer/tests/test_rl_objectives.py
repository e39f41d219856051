"""The objective against a NumPy reference written from the pseudocode, and against what the paper derives from it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from ssr_trainer.objectives import (
    ObjectiveSettings,
    Statistics,
    TurnLogProbs,
    advantages,
    selection_log_prob,
    surrogate,
    trajectory_loss,
)
from ssr_trainer.reference_rl import ReferenceSettings, ReferenceTrajectory, ReferenceTurn, reference_loss

ALPHA, TAU = 0.7, 0.6


def random_batch(seed: int, spread: float = 0.3) -> list[ReferenceTrajectory]:
    """Three questions, four trajectories each, one to three turns; `spread` moves current log-probs away from the logged."""
    rng = np.random.default_rng(seed)
    batch = []
    for question in ("one", "two", "three"):
        for _ in range(4):
            turns = []
            for _ in range(rng.integers(1, 4)):
                k, n, index = rng.integers(3, 7), rng.integers(2, 6), int(rng.integers(6))
                reasoning, action = -rng.exponential(1, k), -rng.exponential(0.5, n)
                scores = -rng.exponential(1, 6)
                scores[index] = reasoning.sum() * k**-ALPHA + spread * rng.normal()
                logits = scores / TAU
                logged = float(logits[index] - np.log(np.exp(logits).sum()))
                turns.append(
                    ReferenceTurn(
                        reasoning, action, scores, index, logged, action + spread * rng.normal(size=n), action + 0.2 * rng.normal(size=n)
                    )
                )
            batch.append(ReferenceTrajectory(question, float(rng.choice([0.0, 0.5, 1.5])), turns))
    return batch


def settings_of(objective: str, beta: float = 0.1) -> ObjectiveSettings:
    return ObjectiveSettings(objective=objective, gamma=0.8, beta=beta, clip_low=0.2, clip_high=0.25)


def reference_settings(settings: ObjectiveSettings) -> ReferenceSettings:
    return ReferenceSettings(
        settings.objective, ALPHA, TAU, settings.gamma, settings.beta, settings.clip_low, settings.clip_high,
        settings.advantage_floor, settings.sapo_positive, settings.sapo_negative,
    )  # fmt: skip


def torch_loss(batch: list[ReferenceTrajectory], settings: ObjectiveSettings) -> tuple[float, list[np.ndarray]]:
    """The trained code on leaf tensors: loss, and per turn the gradients of z's and a's log-probs."""
    values, _ = advantages([t.reward for t in batch], [t.question for t in batch], settings.advantage_floor)
    leaves, total = [], torch.zeros((), dtype=torch.float64)
    for trajectory, advantage in zip(batch, values, strict=True):
        turns = []
        for turn in trajectory.turns:
            reasoning = torch.tensor(turn.reasoning, requires_grad=True)
            action = torch.tensor(turn.action, requires_grad=True)
            leaves += [reasoning, action]
            turns.append(
                TurnLogProbs(
                    action, torch.tensor(turn.logged_action), torch.tensor(turn.reference_action), reasoning,
                    torch.tensor(turn.scores), turn.index, turn.logged_log_q,
                )
            )  # fmt: skip
        total = total + trajectory_loss(turns, float(advantage), ALPHA, TAU, settings, Statistics())
    loss = total / len(batch)
    loss.backward()
    return float(loss.detach()), [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]


def finite_differences(batch: list[ReferenceTrajectory], settings: ReferenceSettings, step: float = 1e-6) -> list[np.ndarray]:
    gradients = []
    for trajectory in batch:
        for turn in trajectory.turns:
            for values in (turn.reasoning, turn.action):
                gradient = np.zeros(len(values))
                for k in range(len(values)):
                    kept = values[k]
                    values[k] = kept + step
                    above = reference_loss(batch, settings)
                    values[k] = kept - step
                    below = reference_loss(batch, settings)
                    values[k] = kept
                    gradient[k] = (above - below) / (2 * step)
                gradients.append(gradient)
    return gradients


@pytest.mark.parametrize("objective", ["grpo", "gspo", "sapo"])
@pytest.mark.parametrize("seed", [1, 2])
def test_loss_and_gradient_equal_the_numpy_reference(objective: str, seed: int) -> None:
    batch, settings = random_batch(seed), settings_of(objective)
    loss, gradients = torch_loss(batch, settings)
    assert abs(loss - reference_loss(batch, reference_settings(settings))) < 1e-9
    for ours, wanted in zip(gradients, finite_differences(batch, reference_settings(settings)), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e-7)


def test_the_selector_gradient_is_one_minus_q_over_k_alpha_tau() -> None:
    for index in range(3):
        reasoning = torch.tensor([-0.5, -1.2, -0.3, -0.9], dtype=torch.float64, requires_grad=True)
        scores = torch.tensor([-0.8, -0.6, -1.1], dtype=torch.float64)
        log_q = selection_log_prob(reasoning, scores, index, ALPHA, TAU)
        log_q.backward()
        expected = (1 - math.exp(float(log_q))) / (4**ALPHA * TAU)
        torch.testing.assert_close(reasoning.grad, torch.full((4,), expected, dtype=torch.float64), atol=1e-12, rtol=0)


@pytest.mark.parametrize("objective", ["grpo", "gspo", "sapo"])
def test_at_ratio_one_the_gradient_is_a_token_level_policy_gradient(objective: str) -> None:
    """On z: advantage A * gamma * (1 - q) / (K^alpha tau) on each of the K inserted tokens; on a: advantage A."""
    settings, advantage = settings_of(objective, beta=0.0), -1.3
    reasoning = torch.tensor([-0.5, -1.2, -0.3, -0.9], dtype=torch.float64, requires_grad=True)
    action = torch.tensor([-0.1, -0.7], dtype=torch.float64, requires_grad=True)
    scores = torch.tensor([-0.8, -0.6, -1.1], dtype=torch.float64)
    scores[1] = reasoning.detach().sum() * 4**-ALPHA
    log_q = float(torch.log_softmax(scores / TAU, 0)[1])
    turn = TurnLogProbs(action, action.detach().clone(), None, reasoning, scores, 1, log_q)
    trajectory_loss([turn], advantage, ALPHA, TAU, settings, Statistics()).backward()
    token_advantage = advantage * settings.gamma * (1 - math.exp(log_q)) / (4**ALPHA * TAU)
    torch.testing.assert_close(reasoning.grad, torch.full((4,), -token_advantage, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(action.grad, torch.full((2,), -advantage, dtype=torch.float64), atol=1e-12, rtol=0)


def test_kl_touches_action_tokens_only() -> None:
    batch = [replace(trajectory, reward=1.0) for trajectory in random_batch(3)]  # no spread: only the KL is left
    _, gradients = torch_loss(batch, settings_of("grpo", beta=0.5))
    assert all(np.all(gradient == 0) for gradient in gradients[0::2])
    assert all(np.all(gradient != 0) for gradient in gradients[1::2])
    _, without = torch_loss(batch, settings_of("grpo", beta=0.0))
    assert all(np.all(gradient == 0) for gradient in without)


def test_a_ratio_beyond_the_clip_has_no_gradient() -> None:
    settings = settings_of("grpo", beta=0.0)
    for log_ratio, advantage, expected in [(0.5, 1.0, 0.0), (-0.5, -1.0, 0.0), (0.5, -1.0, 1.0), (-0.5, 1.0, -1.0)]:
        action = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
        statistics = Statistics()
        turn = TurnLogProbs(action, action.detach() - log_ratio)
        trajectory_loss([turn], advantage, ALPHA, TAU, settings, statistics).backward()
        assert float(action.grad) == pytest.approx(expected * math.exp(log_ratio))
        assert statistics.clipped == (expected == 0)


def test_sapo_is_a_gate_with_slope_one_at_ratio_one() -> None:
    settings = settings_of("sapo")
    for advantage, slope in [(2.0, settings.sapo_positive), (-2.0, settings.sapo_negative)]:
        ratio = torch.tensor(1.4, dtype=torch.float64, requires_grad=True)
        surrogate(ratio, advantage, settings).backward()
        gate = 1 / (1 + math.exp(-slope * 0.4))
        assert float(ratio.grad) == pytest.approx(4 * gate * (1 - gate) * advantage, abs=1e-12)
    ratio = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    surrogate(ratio, 1.0, settings).backward()
    assert float(ratio.grad) == pytest.approx(1.0)


def test_gspo_clips_the_sequence_not_the_token() -> None:
    """Two tokens of opposite ratios: the sequence's ratio is 1, so neither is clipped."""
    action = torch.tensor([-1.0, -1.0], dtype=torch.float64, requires_grad=True)
    logged = action.detach() - torch.tensor([0.5, -0.5], dtype=torch.float64)
    trajectory_loss([TurnLogProbs(action, logged)], 1.0, ALPHA, TAU, settings_of("gspo", beta=0.0), Statistics()).backward()
    torch.testing.assert_close(action.grad, torch.tensor([-1.0, -1.0], dtype=torch.float64), atol=1e-12, rtol=0)


def test_advantages_use_the_population_deviation_and_leave_masked_ones_out() -> None:
    values, flat = advantages([1.5, 0.0, None, 0.5, 0.5, 0.5], ["a", "a", "a", "b", "b", "b"], 1e-6)
    assert values.tolist() == [1.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    assert flat == 1
    floored, _ = advantages([1.0, 0.0], ["a", "a"], floor=2.0)
    assert floored.tolist() == [0.25, -0.25]


def test_an_unknown_objective_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="grpo, gspo, sapo, got 'ppo'"):
        ObjectiveSettings(objective="ppo")
