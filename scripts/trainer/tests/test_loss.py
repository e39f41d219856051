"""The categorical loss and its gradient against plain NumPy."""

import numpy as np
import torch
from ssr_trainer.loss import score, selection_loss


def numpy_loss(token_log_probs: list[np.ndarray], chosen: int, tau: float, alpha: float) -> float:
    scores = np.array([values.sum() / len(values) ** alpha for values in token_log_probs]) / tau
    return float(-(scores[chosen] - np.log(np.exp(scores - scores.max()).sum()) - scores.max()))


def numpy_gradient(token_log_probs: list[np.ndarray], chosen: int, tau: float, alpha: float) -> list[np.ndarray]:
    """dL/dlogp_ij = (q_i - [i = chosen]) / (tau * K_i^alpha)"""
    scores = np.array([values.sum() / len(values) ** alpha for values in token_log_probs]) / tau
    q = np.exp(scores - scores.max())
    q /= q.sum()
    return [
        np.full(len(values), (q[i] - (i == chosen)) / (tau * len(values) ** alpha))
        for i, values in enumerate(token_log_probs)
    ]


def test_loss_and_gradient_equal_the_reference() -> None:
    rng = np.random.default_rng(0)
    for alpha in (0.0, 0.5, 1.0):
        for tau in (0.3, 1.0):
            values = [-rng.exponential(1.0, size=length) for length in (3, 7, 5, 12, 4, 9)]
            tensors = [torch.tensor(v, requires_grad=True) for v in values]
            loss = selection_loss(torch.stack([score(t, alpha) for t in tensors]), 2, tau)
            loss.backward()
            assert abs(float(loss.detach()) - numpy_loss(values, 2, tau, alpha)) < 1e-12
            for tensor, wanted in zip(tensors, numpy_gradient(values, 2, tau, alpha), strict=True):
                np.testing.assert_allclose(tensor.grad.numpy(), wanted, atol=1e-12)


def test_loss_ignores_a_common_shift() -> None:
    scores = torch.tensor([-1.0, -2.0, -0.5])
    assert abs(float(selection_loss(scores, 0, 0.3) - selection_loss(scores - 15, 0, 0.3))) < 1e-5
