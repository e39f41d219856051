"""The real loop, through the `ssr` command of this repository (built by `npm run build`)."""

import pytest
from ssr_trainer.evaluate import harness_evaluation
from ssr_trainer.micro import texts

built = pytest.mark.skipif(not (texts.REPOSITORY / "dist/src/cli/main.js").exists(), reason="needs npm run build")


@built
def test_the_committed_checkpoint_answers_through_the_harness(tmp_path) -> None:
    summary = harness_evaluation(texts.REPOSITORY, texts.MODEL, "dev", tmp_path / "run", ["--limit", "8"])
    assert summary["success"]["overall"]["n"] == 8
    assert summary["success"]["overall"]["rate"] > 0.8


@built
def test_a_failed_evaluation_is_an_error(tmp_path) -> None:
    with pytest.raises(RuntimeError, match="ssr eval"):
        harness_evaluation(texts.REPOSITORY, tmp_path / "no-model", "dev", tmp_path / "run", ["--limit", "1"])
