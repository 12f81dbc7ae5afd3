"""Encoders: from raw images and texts to embeddings. One file a family, imported late; weights are brought along."""

from prune4rel.encoders.embedding import embed
from prune4rel.encoders.encoder import Encoder
from prune4rel.encoders.family import default_encoder, get, list_encoders, open_encoder, register_encoder

__all__ = ["Encoder", "default_encoder", "embed", "get", "list_encoders", "open_encoder", "register_encoder"]
