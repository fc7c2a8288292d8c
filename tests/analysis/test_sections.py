"""The sections of the page keep to their interface."""

from analysis.sections import SECTIONS, contents


def test_a_section_names_every_table_that_it_writes(rlhf, rlhf_table):
    by_name = contents(rlhf, rlhf_table)
    assert list(by_name) == [section.NAME for section in reversed(SECTIONS)]
    for section in SECTIONS:
        assert {table.name for table in by_name[section.NAME].tables} <= set(section.TABLES)
    names = [plan.name for one in by_name.values() for plan in one.figures]
    assert len(names) == len(set(names))  # a figure's name is that of its file
