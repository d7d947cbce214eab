"""The statistics against vectors that were computed elsewhere."""
import unittest

from oracle import statistics


class Intervals(unittest.TestCase):
    def test_wilson(self):
        for k, n, low, high in [
            (0, 10, 0, 0.277533), (1, 10, 0.017876, 0.404150), (5, 10, 0.236593, 0.763407),
            (10, 10, 0.722467, 1), (1, 1, 0.206549, 1), (50, 100, 0.403832, 0.596168),
            (37, 1000, 0.026961, 0.050582), (0, 1000, 0, 0.003827),
        ]:
            found = statistics.wilson(k, n)
            self.assertAlmostEqual(found[0], low, 6, (k, n))
            self.assertAlmostEqual(found[1], high, 6, (k, n))

    def test_nothing_has_no_interval(self):
        self.assertIsNone(statistics.wilson(0, 0))
        self.assertIsNone(statistics.newcombe(0, 0, 1, 2))


class Comparisons(unittest.TestCase):
    VECTORS = [
        ((120, 2000, 90, 2000), 2.126777, 0.033439, 0.001152, 0.028969),
        ((12, 200, 9, 200), 0.672546, 0.501236, -0.030925, 0.061963),
        ((300, 10000, 360, 10000), -2.375013, 0.017548, -0.010972, -0.001047),
    ]

    def test_two_proportions(self):
        for sample, z, p, low, high in self.VECTORS:
            found = statistics.compare(*sample)
            for name, expected in zip(("z", "p", "low", "high"), (z, p, low, high)):
                self.assertAlmostEqual(found[name], expected, 6, (sample, name))

    def test_no_verdict_below_five_expected(self):
        self.assertTrue(statistics.has_verdict(5, 100, 5, 100))
        self.assertFalse(statistics.has_verdict(5, 100, 4, 100))
        self.assertFalse(statistics.has_verdict(96, 100, 95, 100))
        found = statistics.compare(4, 100, 4, 100)
        self.assertEqual((found["z"], found["p"], found["verdict"]), (None, None, False))
        self.assertIsNotNone(found["low"])

    def test_nobody_or_everybody_gives_no_test(self):
        self.assertIsNone(statistics.z_test(0, 10, 0, 10))
        self.assertIsNone(statistics.z_test(10, 10, 10, 10))
        self.assertIsNone(statistics.z_test(0, 0, 1, 10))

    def test_holm(self):
        # By hand: 3 × 0.01, 2 × 0.02, then 0.03 may not fall below 0.04.
        for found, expected in zip(statistics.holm([0.02, 0.03, 0.01]), [0.04, 0.04, 0.03]):
            self.assertAlmostEqual(found, expected, 12)
        self.assertEqual(statistics.holm([0.9, 0.6]), [1.0, 1.0])
        self.assertEqual(statistics.holm([]), [])

    def test_pairs_without_a_verdict_are_not_corrected_for(self):
        pairs = statistics.compare_pairs([(120, 2000), (90, 2000), (0, 3)])
        self.assertEqual([(i, j) for i, j, _ in pairs], [(0, 1), (0, 2), (1, 2)])
        self.assertAlmostEqual(pairs[0][2]["p_adjusted"], 0.033439, 6)
        self.assertIsNone(pairs[1][2]["p_adjusted"])

    def test_units_needed(self):
        # The example of textbooks: 10 % against 15 %, 686 in each group.
        self.assertEqual(statistics.units_needed(0.10, 0.15), 686)
        self.assertEqual(statistics.units_needed(0.15, 0.10), 686)
        self.assertIsNone(statistics.units_needed(0.1, 0.1))


class Percentiles(unittest.TestCase):
    def test_linear_between_the_nearest(self):
        self.assertEqual(statistics.percentile([1, 2, 3, 4], 0.5), 2.5)
        self.assertAlmostEqual(statistics.percentile([0, 10], 0.9), 9)
        self.assertEqual(statistics.percentile([7], 0.99), 7)
        self.assertIsNone(statistics.percentile([], 0.5))


if __name__ == "__main__":
    unittest.main()
