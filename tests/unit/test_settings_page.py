from tests.support.settings_table import PAGE, SERVICES, rows_of, table


def test_the_page_of_settings_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == table(), "run: python -m tests.support.settings_table"


def test_every_setting_says_what_it_is_and_shows_a_value() -> None:
    for settings in SERVICES.values():
        assert all(meaning for _, _, meaning in rows_of(settings))
        assert [
            n for n, field in settings.model_fields.items() if not (field.examples or n == "hostname")
        ] == []
