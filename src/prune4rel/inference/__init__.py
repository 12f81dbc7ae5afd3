"""Inference: a model, examples and how they are shown in; logits and embeddings out. Knows no training."""

from prune4rel.inference.answers import (
    Answers,
    MeanAnswers,
    batch_of,
    collect,
    embed,
    make_views,
    mean_over_views,
    predict,
    predict_and_embed,
)
from prune4rel.inference.model import Model, load_model

__all__ = [
    "Answers",
    "MeanAnswers",
    "Model",
    "batch_of",
    "collect",
    "embed",
    "load_model",
    "make_views",
    "mean_over_views",
    "predict",
    "predict_and_embed",
]
