"""Rows of a stream that are no longer held: what is known of them, and what they can cost at most."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

BINS = 64
"""Numbers that the distances of a group's rows from the boundary are kept as."""


@dataclass(frozen=True)
class Forgotten:
    """Rows on one side of the boundary at a point (v, sigma), both divided by the problem's total.

    ``slack`` holds lower limits of how far they were from the boundary, ``weight`` how much weight each stands for, ``reach`` the largest
    ||phi||, ``phi`` and ``diag`` are Σ weight phi and Σ weight ||phi||², and ``last`` the number of the latest row.
    """

    inside: bool
    v: np.ndarray
    sigma: float
    slack: np.ndarray
    weight: np.ndarray
    reach: float
    phi: np.ndarray
    diag: float
    last: int

    @classmethod
    def of(cls, inside: bool, v: np.ndarray, sigma: float, slack: np.ndarray, weight: np.ndarray, Phi: np.ndarray, last: int) -> Forgotten:
        """Rows that were held until now."""
        norms = np.einsum("ij,ij->i", Phi, Phi)
        limits = _binned(slack, weight)
        return cls(inside, v, sigma, *limits, float(np.sqrt(norms.max())), weight @ Phi, float(weight @ norms), last)

    def moved_to(self, v: np.ndarray, sigma: float) -> Forgotten:
        """The same rows seen from another point: |G - G'| <= ||phi|| ||v - v'||."""
        shift = (sigma - self.sigma) if self.inside else (self.sigma - sigma)
        slack = self.slack - self.reach * float(np.linalg.norm(v - self.v)) - shift
        return replace(self, v=v, sigma=sigma, slack=slack)

    def loss(self, v: np.ndarray, sigma: float) -> float:
        """At most so much Σ weight · (how far on the wrong side) at a point."""
        moved = self.moved_to(v, sigma)
        return float(moved.weight @ np.maximum(-moved.slack, 0.0))

    def merged(self, later: Forgotten) -> Forgotten:
        """Both groups as one, seen from the later one's point."""
        own = self.moved_to(later.v, later.sigma)
        slack, weight = _binned(np.concatenate([own.slack, later.slack]), np.concatenate([own.weight, later.weight]))
        sums = max(self.reach, later.reach), self.phi + later.phi, self.diag + later.diag, later.last
        return Forgotten(self.inside, later.v, later.sigma, slack, weight, *sums)

    def decayed(self, share: float) -> Forgotten:
        """The same rows with less weight."""
        return replace(self, weight=share * self.weight, phi=share * self.phi, diag=share * self.diag)


def _binned(slack: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most ``BINS`` lower limits, and the weight that each stands for."""
    order = np.argsort(slack, kind="stable")
    starts = np.unique(np.linspace(0, len(slack), min(BINS, len(slack)), endpoint=False).astype(np.intp))
    return slack[order][starts], np.add.reduceat(weight[order], starts)
