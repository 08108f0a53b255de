"""Off-policy estimates beside what they have to be by hand, and beside a policy's own rates."""

import os
from pathlib import Path

import numpy as np
import pytest
from open_bandit import campaigns, estimate

DATA = Path(os.environ.get("STEELYARD_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
FILE = DATA.parent / "open-bandit" / "feedback.csv.gz"


def test_off_policy_estimates_are_unbiased():
    """Rewards by item, logged by a skewed policy of known probabilities; the uniform one is worth 0.25."""
    reward, logging = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        item = rng.choice(4, 800, p=logging)
        clicks = (rng.random(800) < reward[item]).astype(float)
        one = estimate(clicks, 0.25 / logging[item], item, np.full(4, 0.25), seed=seed)
        found.append([one["ips"]["value"], one["snips"]["value"], one["dr"]["value"]])
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - 0.25) < 3 * error)


def test_a_reward_model_without_another_fold_is_zero_and_adds_nothing():
    found = estimate(*map(np.array, ([1.0], [0.5], [0], [1.0])))
    assert found["dr"]["value"] == found["ips"]["value"] == 0.5


def test_snips_and_ips_by_hand():
    """Two shows of weight 2 and 0.5, the first clicked: IPS (2 + 0) / 2, SNIPS 2 / 2.5."""
    found = estimate(np.array([1.0, 0.0]), np.array([2.0, 0.5]), np.array([0, 1]), np.array([0.5, 0.5]))
    assert found["ips"]["value"] == pytest.approx(1.0)
    assert found["snips"]["value"] == pytest.approx(0.8)
    assert found["effective"] == pytest.approx(2.5**2 / 4.25)
    assert "are needed" in found["refusal"]


def test_rates_are_covered_where_policies_overlap_and_refused_where_not():
    """The uniform policy's own click rates are in its log: all 38, men 46, women 46 of 10,000 (dataset.json)."""
    if not FILE.is_file():
        pytest.skip(f"{FILE} is not there")
    by_name = {row["campaign"]: row for row in campaigns(FILE)}
    for name, rate in (("all", 0.0038), ("men", 0.0046)):
        assert by_name[name]["own"]["value"] == pytest.approx(rate)
        for kind in ("ips", "snips", "dr"):
            one = by_name[name]["estimated"][kind]
            assert one["low"] <= rate <= one["high"]
    assert by_name["women"]["estimated"]["effective"] == pytest.approx(2.08, abs=0.01)
    assert "worth 2, and 100 are needed" in by_name["women"]["estimated"]["refusal"]
