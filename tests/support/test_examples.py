"""Property tests try the examples of our profiles."""

from hypothesis import settings


def test_our_profiles_are_known_and_one_of_them_counts() -> None:
    assert settings.get_profile("many").max_examples == 5_000
    assert settings.get_current_profile_name() in {"ci", "here", "many"}
    assert settings().deadline is None
