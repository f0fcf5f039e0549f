"""Figures that describe paired outcomes. They permit nothing, and no rule looks at them.

SciPy comes with the extra `stats`; without it there is no figure.
"""

from __future__ import annotations


def mcnemar_exact(only_a: int, only_b: int) -> float | None:
    """Return the exact two-sided McNemar p of discordant pairs, null without SciPy or without such pairs.

    Under no difference between the sides the pairs that only A passed are binomial with one half among the
    discordant ones.
    """
    if only_a + only_b == 0:
        return None
    try:
        from scipy.stats import binomtest
    except ImportError:
        return None
    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
