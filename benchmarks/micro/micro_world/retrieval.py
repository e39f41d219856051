"""The generator's own copies of the two searches, to check that an exported corpus answers its gold queries."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
from PIL import Image

K1, B = 1.2, 0.75
DESCRIPTOR_SIDE = 12


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


class Bm25:
    """BM25 over short passages: idf = ln(1 + (N - n + 0.5) / (n + 0.5))."""

    def __init__(self, passages: list[str]) -> None:
        self._passages = passages
        self._counts = [Counter(words(passage)) for passage in passages]
        self._mean_words = sum(sum(count.values()) for count in self._counts) / len(passages)
        self._document_frequency = Counter(word for count in self._counts for word in count)
        self._postings: dict[str, list[int]] = {}
        for index, count in enumerate(self._counts):
            for word in count:
                self._postings.setdefault(word, []).append(index)

    def best(self, query: str, count: int) -> list[str]:
        """The passages with the highest scores, best first, ties in corpus order."""
        scores: Counter[int] = Counter()
        for word in words(query):
            seen_in = self._document_frequency[word]
            idf = math.log(1 + (len(self._passages) - seen_in + 0.5) / (seen_in + 0.5))
            for index in self._postings.get(word, []):
                frequency, length = self._counts[index][word], sum(self._counts[index].values())
                norm = frequency + K1 * (1 - B + B * length / self._mean_words)
                scores[index] += idf * frequency * (K1 + 1) / norm
        ranked = sorted(scores, key=lambda index: (-scores[index], index))
        return [self._passages[index] for index in ranked[:count]]


def descriptor(pixels: np.ndarray) -> np.ndarray:
    """12x12 RGB means, less the mean over the picture: float32 [432]."""
    small = Image.fromarray(pixels).resize((DESCRIPTOR_SIDE, DESCRIPTOR_SIDE), Image.Resampling.BOX)
    values = np.asarray(small, np.float32)
    return (values - values.mean(axis=(0, 1))).ravel()
