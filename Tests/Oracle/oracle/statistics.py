"""The statistics of a report and of a comparison: docs/reports.md.

Sources: Wilson, JASA 22 (1927), the score interval; Newcombe, Statistics in Medicine 17 (1998),
method 10, for the difference of two proportions; Holm, Scandinavian Journal of Statistics 6 (1979);
Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions, 3rd edition (2003),
chapter 4, for the size of a sample, without correction for continuity.
"""
import itertools
import math
import statistics

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""

EXPECTED_MIN = 5
"""With a smaller expected count the normal approximation gives no verdict."""


def wilson(k, n):
    """The 95 % interval of k of n, or None where n is 0."""
    if n == 0:
        return None
    p = k / n
    scale = 1 + Z * Z / n
    middle = (p + Z * Z / (2 * n)) / scale
    half = Z / scale * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    # At the ends the interval reaches 0 and 1, which rounding may miss.
    low = 0.0 if k == 0 else max(0.0, middle - half)
    high = 1.0 if k == n else min(1.0, middle + half)
    return low, high


def two_sided(z):
    """The probability of a |z| as large, if there is no difference."""
    return math.erfc(abs(z) / math.sqrt(2))


def z_test(a, n, b, m):
    """The pooled z of a/n against b/m and its two-sided p; None without any variance."""
    if n == 0 or m == 0:
        return None
    pooled = (a + b) / (n + m)
    variance = pooled * (1 - pooled) * (1 / n + 1 / m)
    if variance == 0:
        return None
    z = (a / n - b / m) / math.sqrt(variance)
    return z, two_sided(z)


def newcombe(a, n, b, m):
    """The 95 % interval of a/n − b/m, from the Wilson interval of each."""
    if n == 0 or m == 0:
        return None
    p, q = a / n, b / m
    (p_low, p_high), (q_low, q_high) = wilson(a, n), wilson(b, m)
    return (p - q - math.hypot(p - p_low, q_high - q),
            p - q + math.hypot(p_high - p, q - q_low))


def has_verdict(a, n, b, m):
    """Whether no expected count of the pooled table (clicks and others, of both) is below 5."""
    if n == 0 or m == 0:
        return False
    pooled = (a + b) / (n + m)
    return min(size * share for size in (n, m) for share in (pooled, 1 - pooled)) >= EXPECTED_MIN


def compare(a, n, b, m):
    """What `tapline compare` says of two; without a verdict z and p are None."""
    test = z_test(a, n, b, m) if has_verdict(a, n, b, m) else None
    interval = newcombe(a, n, b, m)
    return {
        "difference": a / n - b / m if n and m else None,
        "z": test and test[0], "p": test and test[1],
        "low": interval and interval[0], "high": interval and interval[1],
        "verdict": test is not None,
    }


def holm(ps):
    """The adjusted p of each, in the order given: step down, never falling, at most 1."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def compare_pairs(samples):
    """Every pair of `(k, n)` compared; p over the pairs with a verdict adjusted by Holm.

    Returns a list of (index, index, comparison), the comparison with `p_adjusted`.
    """
    pairs = [(i, j, compare(*samples[i], *samples[j]))
             for i, j in itertools.combinations(range(len(samples)), 2)]
    judged = [found for _, _, found in pairs if found["verdict"]]
    for found, p in zip(judged, holm([found["p"] for found in judged])):
        found["p_adjusted"] = p
    for _, _, found in pairs:
        found.setdefault("p_adjusted", None)
    return pairs


def units_needed(p, q, power=0.8, alpha=0.05):
    """Units in each of two equal groups, for the z test to find p against q with that power.

    n = (z(1−α/2) √(2 r (1−r)) + z(power) √(p (1−p) + q (1−q)))² / (p − q)², r = (p + q)/2,
    rounded up; None where p and q are equal.
    """
    if p == q:
        return None
    quantile = statistics.NormalDist().inv_cdf
    middle = (p + q) / 2
    root = quantile(1 - alpha / 2) * math.sqrt(2 * middle * (1 - middle)) \
        + quantile(power) * math.sqrt(p * (1 - p) + q * (1 - q))
    return math.ceil(root * root / (p - q) ** 2)


def percentile(sorted_values, fraction):
    """PostgreSQL's percentile_cont: at (n − 1) · fraction, linear between its neighbours."""
    if not sorted_values:
        return None
    place = (len(sorted_values) - 1) * fraction
    below = math.floor(place)
    low, high = sorted_values[below], sorted_values[math.ceil(place)]
    return low + (place - below) * (high - low)
