"""Traces are of the promised length, tell nothing that is not known yet, and leave questions and gold actions alone."""

import numpy as np
import pytest
from micro_world.entities import NamePool
from micro_world.questions import (
    EXPORT_STYLE,
    FROM_EVIDENCE,
    IDENTIFY,
    LOOKUP,
    QUESTION_TYPES,
    TRAINING_STYLE,
    Builder,
    Question,
)
from ssr_trainer.dialect import reasoning_part
from ssr_trainer.micro import texts
from ssr_trainer.micro.traces import MAX_TOKENS, MIN_TOKENS, WAYS, search_query, traces
from tokenizers import Tokenizer


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    rng = np.random.default_rng(11)
    builders = [Builder(NamePool("train", unique=False), style) for style in (TRAINING_STYLE, EXPORT_STYLE)]
    return [builder.build(rng, name) for builder in builders for name in QUESTION_TYPES for _ in range(40)]


def test_a_trace_has_60_to_150_tokens_of_the_committed_tokenizer(questions: list[Question]) -> None:
    tokenizer = Tokenizer.from_file(str(texts.MODEL / "tokenizer.json"))
    rng = np.random.default_rng(12)
    for question in questions:
        for trace in traces(question, rng, free=bool(rng.integers(2))):
            length = len(tokenizer.encode(reasoning_part(trace), add_special_tokens=False).ids)
            assert MIN_TOKENS <= length <= MAX_TOKENS, f"{length}: {trace}"


def test_wording_varies_with_the_generator_alone(questions: list[Question]) -> None:
    for question in questions[::10]:
        for free in (False, True):
            told = [traces(question, np.random.default_rng(seed), free=free) for seed in (1, 1, 2, 3, 4, 5, 6, 7, 8)]
            assert told[0] == told[1]
            assert len({tuple(each) for each in told}) > 1
            assert all(question.text in trace and len(each) == len(question.turns) for each in told for trace in each)


def test_a_trajectory_keeps_to_one_way_of_wording_unless_it_is_free(questions: list[Question]) -> None:
    rng, long = np.random.default_rng(15), [question for question in questions if len(question.turns) > 2]
    openings = [{trace.split(":")[0] for trace in traces(question, rng)} for question in long]
    assert {len(each) for each in openings} == {1}
    assert len(set.union(*openings)) == WAYS
    free = [{trace.split(":")[0] for trace in traces(question, rng, free=True)} for question in long]
    assert max(len(each) for each in free) > 1


def test_a_trace_knows_no_fact_before_it_is_found(questions: list[Question]) -> None:
    rng, searches = np.random.default_rng(13), 0
    for question in questions:
        for number, (turn, trace) in enumerate(zip(question.turns, traces(question, rng), strict=True)):
            if turn.reasoning not in (IDENTIFY, LOOKUP):
                continue
            searches += 1
            assert question.answer not in trace
            found = " ".join([question.text, *(past.observation_text or "" for past in question.turns[:number])])
            names = [name for entity in question.entities for name in (entity.name, entity.alias or "") if name]
            assert all(name in found for name in names if name in trace)
    assert searches > 300


def test_a_trace_leads_to_its_action(questions: list[Question]) -> None:
    rng = np.random.default_rng(14)
    for question in questions:
        for turn, trace in zip(question.turns, traces(question, rng), strict=True):
            last = trace.rstrip(".").split(". ")[-1]
            if turn.reasoning == LOOKUP:
                assert search_query(turn) in last
            if turn.reasoning == FROM_EVIDENCE or turn.action.startswith("<answer>"):
                assert last.endswith(question.answer)
            assert turn.action not in trace
