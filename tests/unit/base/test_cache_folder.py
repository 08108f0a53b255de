"""The folder of caches, by the environment."""

from steelyard.base.files import cache_folder


def test_the_cache_lies_where_the_environment_says():
    assert cache_folder({"STEELYARD_CACHE": "x"}).as_posix() == "x"
    assert cache_folder({"XDG_CACHE_HOME": "x"}).as_posix() == "x/steelyard"
    assert cache_folder({}).parts[-2:] == (".cache", "steelyard")
