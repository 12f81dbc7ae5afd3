"""A page on which a person settles labels: what there is to see, in which order, what is left, and its server."""

from prune4rel.review.folder import ReviewFolder
from prune4rel.review.left import Left, expect_left
from prune4rel.review.order import ORDERS, order_rows

__all__ = ["ORDERS", "Left", "ReviewFolder", "expect_left", "order_rows"]
