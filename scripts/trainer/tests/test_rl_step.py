"""Updates on rollouts of the embedded engine (test/golden/rollouts/micro), pictures and crops included.

The golden minibatch was drawn from the committed micro checkpoint. Make it again after that changes:
ssr rollout --benchmark micro --split dev --group 4 --questions 4 --tau 2 --temperature 1.3 --seed 3 --output test/golden/rollouts/micro
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from ssr_trainer.images import ImageSpec
from ssr_trainer.micro import texts
from ssr_trainer.objectives import ObjectiveSettings, advantages
from ssr_trainer.rl_config import RlConfig, RlOptimiserSettings
from ssr_trainer.rl_policy import TokenScorer
from ssr_trainer.rl_rows import RowPacker
from ssr_trainer.rl_step import Diverged, Update, apply_minibatch, share_passes
from ssr_trainer.rollouts import Minibatch, read_minibatch
from ssr_trainer.train_rl import Trainer, load_policy

GOLDEN = texts.REPOSITORY / "test/golden/rollouts/micro"
OPTIMISER = RlOptimiserSettings(learning_rate=1e-3, clip_norm=1e9)


class Still(torch.optim.SGD):
    """Keeps the gradients for the tests to read and the weights as they are."""

    def step(self, closure=None) -> None:  # noqa: ANN001
        self.gradients = [weight.grad.clone() for group in self.param_groups for weight in group["params"]]


@pytest.fixture(scope="module")
def golden() -> Minibatch:
    torch.set_num_threads(1)
    return read_minibatch(GOLDEN)


@pytest.fixture(scope="module")
def scorer() -> TokenScorer:
    return TokenScorer(load_policy(RlConfig(str(texts.MODEL), ""), texts.MODEL))


def update_of(scorer: TokenScorer, **changes: object) -> Update:
    config = RlConfig(str(texts.MODEL), "", optimiser=OPTIMISER, **changes)
    return Update(Accelerator(cpu=True), scorer, None, Still(scorer.parameters(), lr=1), RowPacker(ImageSpec.load(texts.MODEL)), config)


def gradients_of(scorer: TokenScorer, minibatch: Minibatch, **changes: object) -> tuple[dict[str, float], list[torch.Tensor]]:
    update = update_of(scorer, **changes)
    figures = apply_minibatch(update, minibatch, 0)
    return figures, update.optimiser.gradients


def assert_same(one: tuple[dict[str, float], list[torch.Tensor]], other: tuple[dict[str, float], list[torch.Tensor]]) -> None:
    assert abs(one[0]["loss"] - other[0]["loss"]) < 1e-5
    for first, second in zip(one[1], other[1], strict=True):
        torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-4)


def test_the_minibatch_reads_as_typescript_wrote_it(golden: Minibatch) -> None:
    expected = json.loads((GOLDEN / "expected.json").read_text())
    rewards, questions = [r.reward for r in golden.rollouts], [r.question for r in golden.rollouts]
    assert rewards == expected["rewards"]
    assert sum(len(rollout.turns) for rollout in golden.rollouts) == expected["turns"]
    values, flat = advantages(rewards, questions, 1e-6)
    np.testing.assert_allclose(values, expected["advantages"], atol=1e-9)
    assert flat == expected["groupsWithoutSpread"]
    for rollout in golden.rollouts:
        for turn in rollout.turns:
            logits = torch.tensor(turn.scores, dtype=torch.float64) / golden.header.tau
            assert float(torch.log_softmax(logits, 0)[turn.index]) == pytest.approx(turn.log_q, abs=1e-9)


def test_at_step_0_all_ratios_are_1_and_scores_are_the_engines(scorer: TokenScorer, golden: Minibatch) -> None:
    figures, _ = gradients_of(scorer, golden)
    assert any(len(rollout.images) > 1 for rollout in golden.rollouts), "a crop is part of it"
    assert figures["turns_trained"] > 10
    assert figures["largest_ratio_gap"] < 1e-3
    assert figures["largest_score_gap"] < 1e-3
    assert figures["score_alarms"] == 0 and figures["clip_fraction"] == 0


def test_other_weights_than_the_engines_raise_the_alarm(scorer: TokenScorer, golden: Minibatch) -> None:
    other = TokenScorer(load_policy(RlConfig(str(texts.MODEL), ""), texts.MODEL))
    with torch.no_grad():
        other.model.model.language_model.layers[1].mlp.down_proj.weight.mul_(1.2)
    figures, _ = gradients_of(other, golden)
    assert figures["score_alarms"] > 0 and figures["largest_score_gap"] > 0.01


def test_padding_and_the_order_of_a_batch_change_nothing(scorer: TokenScorer, golden: Minibatch) -> None:
    whole = gradients_of(scorer, golden, rows_per_pass=16)
    assert_same(whole, gradients_of(scorer, golden, rows_per_pass=1))
    shuffled = replace(golden, rollouts=tuple(golden.rollouts[i] for i in np.random.default_rng(0).permutation(len(golden.rollouts))))
    assert_same(whole, gradients_of(scorer, shuffled, rows_per_pass=3))


def test_recomputed_competitors_give_the_same_step_on_policy(scorer: TokenScorer, golden: Minibatch) -> None:
    assert_same(gradients_of(scorer, golden), gradients_of(scorer, golden, recompute_scores=True))


def test_one_step_per_fresh_minibatch_is_the_same_for_all_objectives(scorer: TokenScorer, golden: Minibatch) -> None:
    """All ratios are 1 and every f has slope 1 there, so what differs between GRPO, GSPO and SAPO never acts."""
    grpo = gradients_of(scorer, golden)[1]
    for objective in ("gspo", "sapo"):
        other = gradients_of(scorer, golden, objective=ObjectiveSettings(objective=objective))[1]
        for first, second in zip(grpo, other, strict=True):
            torch.testing.assert_close(first, second, atol=1e-3, rtol=1e-3)


def test_masked_trajectories_train_nothing_and_do_not_count(scorer: TokenScorer, golden: Minibatch) -> None:
    masked = tuple(replace(r, reward=None) if r.question == "micro-dev-0078" else r for r in golden.rollouts)
    figures, gradients = gradients_of(scorer, replace(golden, rollouts=masked))
    whole, unmasked = gradients_of(scorer, golden)
    assert figures["masked"] == 4 and figures["trajectories"] == 12
    # Those four had no spread: only the number of trajectories differs.
    assert figures["loss"] == pytest.approx(whole["loss"] * 16 / 12, abs=1e-6)
    torch.testing.assert_close(gradients[0], unmasked[0] * 16 / 12, atol=1e-5, rtol=1e-4)


def test_a_loss_that_is_no_number_is_refused_before_the_step(scorer: TokenScorer, golden: Minibatch) -> None:
    first = golden.rollouts[0]
    turns = (replace(first.turns[0], action_log_probs=(float("nan"),) * first.turns[0].action), *first.turns[1:])
    update = update_of(scorer)
    with pytest.raises(Diverged, match="finite numbers at step 7, got loss nan"):
        apply_minibatch(update, replace(golden, rollouts=(replace(first, turns=turns), *golden.rollouts[1:])), 7)
    assert not hasattr(update.optimiser, "gradients"), "no step was taken"
    update.optimiser.zero_grad()


def test_freeform_trains_written_reasoning_token_by_token(scorer: TokenScorer, golden: Minibatch) -> None:
    """The same rollouts read as if the model had written z: its log-probs are the chosen candidate's."""
    plain = gradients_of(scorer, golden)[0]["tokens_trained"]
    written = []
    for rollout in golden.rollouts:
        turns = [replace(t, index=None, scores=None, log_q=None, written=(-1.0,) * t.reasoning) for t in rollout.turns]
        written.append(replace(rollout, turns=tuple(turns)))
    header = replace(golden.header, reasoning="freeform")
    figures, _ = gradients_of(scorer, Minibatch(header, tuple(written)), reasoning="freeform")
    inserted = sum(
        turn.reasoning for r in golden.rollouts if r.question in ("micro-dev-0155", "micro-dev-0150") for turn in r.turns
    )
    assert figures["tokens_trained"] == plain + inserted
    with pytest.raises(ValueError, match="expected rollouts with reasoning 'ssr', got 'freeform'"):
        gradients_of(scorer, Minibatch(header, tuple(written)))


def test_every_process_has_as_many_passes(scorer: TokenScorer, golden: Minibatch) -> None:
    packer = RowPacker(ImageSpec.load(texts.MODEL))
    rows = [packer.row(rollout, golden.header) for rollout in golden.rollouts[:9]]
    shares = [share_passes(rows, 2, rank, 2) for rank in range(2)]
    assert len(shares[0]) == len(shares[1]) == 3
    counted = [index for share in shares for own in share if own.counts for index in own.indices]
    assert sorted(counted) == list(range(9))
    assert [own.counts for own in shares[1]] == [True, True, False]


def config_file(folder: Path, **changes: object) -> Path:
    path = folder / "config.json"
    base = {"model": str(texts.MODEL), "run": "run", "threads": 1, "optimiser": {"learning_rate": 1e-3}}
    path.write_text(json.dumps({**base, **changes}))
    return path


def run_trainer(path: Path, *words: str, minibatches: int = 1, served: bool = False) -> list[dict[str, object]]:
    """Minibatches as arguments, or on stdin as `ssr train` sends them."""
    lines = json.dumps({"minibatch": str(GOLDEN)}) + "\n"
    named = [] if served else [str(GOLDEN)] * minibatches
    command = [sys.executable, *words, "-m", "ssr_trainer.train_rl", str(path), *named]
    finished = subprocess.run(command, input=lines * minibatches, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]


def weights_in(reply: dict[str, object]) -> bytes:
    return (Path(str(reply["weights"])) / "model.safetensors").read_bytes()


def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path) -> None:
    kl = ObjectiveSettings(beta=0.05)
    config = RlConfig(str(texts.MODEL), "unbroken", optimiser=RlOptimiserSettings(learning_rate=1e-3), objective=kl)
    unbroken = Trainer(config, tmp_path)
    unbroken.step(GOLDEN)
    two_steps = unbroken.step(GOLDEN)
    broken = replace(config, run="broken")
    Trainer(broken, tmp_path).step(GOLDEN)
    resumed = Trainer(broken, tmp_path)
    assert resumed.hello()["step"] == 1
    reply = resumed.step(GOLDEN)
    assert weights_in(reply) == weights_in(two_steps)
    assert reply["metrics"] == two_steps["metrics"]


def test_a_trainer_killed_in_a_step_loses_at_most_that_step(tmp_path: Path) -> None:
    """Served over stdin, killed with SIGKILL after the first step while it works on the second, started again."""
    wanted = run_trainer(config_file(tmp_path, run="unbroken"), minibatches=2)[-1]
    path = config_file(tmp_path)
    line = json.dumps({"minibatch": str(GOLDEN)}) + "\n"
    command = [sys.executable, "-m", "ssr_trainer.train_rl", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as served:
        assert served.stdin is not None and served.stdout is not None
        assert json.loads(served.stdout.readline())["step"] == 0
        served.stdin.write(line)
        served.stdin.flush()
        assert json.loads(served.stdout.readline())["step"] == 1
        served.stdin.write(line)
        served.stdin.flush()
        served.kill()
    hello, *replies = run_trainer(path)
    assert hello["step"] == 1
    assert weights_in(replies[-1]) == weights_in(wanted)


def test_two_processes_give_the_step_of_one(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    one = run_trainer(config_file(tmp_path / "one", rows_per_pass=3))[-1]
    hello, two = run_trainer(config_file(tmp_path / "two", rows_per_pass=3), *launcher, served=True)
    assert hello["processes"] == 2
    assert two["metrics"]["turns_trained"] == one["metrics"]["turns_trained"]
    for name in ("loss", "gradient_norm"):
        assert two["metrics"][name] == pytest.approx(one["metrics"][name], abs=1e-5, rel=1e-5)
