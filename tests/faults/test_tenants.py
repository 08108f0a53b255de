"""A slice of the campaign on tenants; `make tenants` is the long run."""

import pytest
import tenants


@pytest.mark.parametrize("number", [0, 1, 49])
def test_nothing_crosses_from_one_tenant_to_another(monkeypatch, number):
    """Piece 49 goes through the command line."""
    monkeypatch.setattr(tenants, "CHECKS", 50)
    assert tenants.work(number)["checks"] in (tenants.CHECKS, 12)


def test_no_random_name_leaves_the_folder_and_no_uri_its_scope(tmp_path):
    for seed in range(3000):
        tenants.name(tenants.np.random.default_rng(seed), tmp_path)
        tenants.uri(tenants.np.random.default_rng(seed))


def test_the_campaign_sees_a_crossing(monkeypatch, tmp_path):
    """All tenants in one vault: what the campaign is to find."""
    monkeypatch.setattr(tenants, "vault_of", lambda folder, tenant: tmp_path / "cortex-mem-all.db")
    monkeypatch.setattr(tenants, "name", lambda rng, folder: None)
    with pytest.raises(AssertionError, match=r"was shown|counts"):
        for number in range(5):
            tenants.work(number)


def test_the_campaign_sees_a_name_that_leaves_the_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tenants, "vault_of", lambda folder, name: tmp_path / f"cortex-mem-{name}.db")
    with pytest.raises(AssertionError, match="is the file"):
        for seed in range(50):
            tenants.name(tenants.np.random.default_rng(seed), tmp_path)
