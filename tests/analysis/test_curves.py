"""The learning curves that a page's script draws anew, in headless Chromium."""

import re


def ends(tab) -> dict[str, float]:
    """Return the arms that are drawn, with the values that the page says of them, the highest first."""
    text = tab.locator("#curves-said").inner_text().partition(": ")[2].replace("\u2212", "-")
    return {arm: float(value) for arm, value in re.findall(r"([\w-]+) (-?[\d.e+-]*\d)", text)}


def test_measure_axis_and_arms_can_be_chosen(visit):
    tab = visit(1400)
    tab.locator("#pictures a[href='#curves-form']").click()
    first = ends(tab)
    assert len(first) == tab.locator("#curves polyline").count() > 1
    values = [*first.values()]
    assert values == sorted(values, reverse=True)
    name = tab.locator("#curves-arms label").first.inner_text()
    tab.locator("#curves-arms input").first.uncheck()
    assert ends(tab) == {arm: value for arm, value in first.items() if arm != name}
    tab.locator("#curves-arms input").first.check()
    assert ends(tab) == first
    before = tab.locator("#curves").inner_html()
    tab.select_option("select[name=axis]", "samples")
    assert ends(tab) == first  # the same runs, by another axis
    assert tab.locator("#curves").inner_html() != before
    measures = tab.locator("select[name=measure] option").all_inner_texts()
    assert "Reward" in measures
    tab.select_option("select[name=measure]", label="Entropy of the policy, nats per token")
    assert ends(tab) != first
    tab.locator("#curves-form button[name=none]").click()
    assert tab.locator("#curves-said").inner_text() == "Tick an arm."
    tab.locator("#curves-arms input").first.check()
    assert tab.locator("#curves polygon").count() == 1  # with its range, which many arms would cover
    tab.locator("#curves-form button[name=every]").click()
    assert len(ends(tab)) == len(first)


def test_a_part_of_the_axis_is_seen_larger_and_all_of_it_again(visit):
    tab = visit(1400)
    tab.locator("#curves").scroll_into_view_if_needed()
    whole, last = tab.locator("#curves-form button[name=whole]"), tab.locator("#curves > text").last
    assert whole.is_hidden()
    assert last.inner_html() == "updates"
    ticks = tab.locator("#curves text").all_inner_texts()
    box = tab.locator("#curves").bounding_box()

    def drag(start: float, end: float) -> None:
        tab.mouse.move(box["x"] + start * box["width"], box["y"] + 80)
        tab.mouse.down()
        tab.mouse.move(box["x"] + end * box["width"], box["y"] + 80)
        tab.mouse.up()

    drag(0.5, 0.5)  # a click
    assert whole.is_hidden()
    last_points = tab.locator("#curves-said").inner_text()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80)
    assert re.search(r" at \d+ updates: ", tab.locator("#curves-said").inner_text())
    tab.mouse.move(0, 0)
    assert tab.locator("#curves-said").inner_text() == last_points
    drag(0.95, 0.3)  # to the left, as well as to the right
    assert whole.is_visible()
    assert tab.locator("#curves text").all_inner_texts() != ticks
    whole.click()
    assert whole.is_hidden()
    assert tab.locator("#curves text").all_inner_texts() == ticks


def test_the_words_of_the_picture_keep_their_size_on_a_phone(visit):
    tab = visit(390)
    assert tab.locator("#curves text").first.bounding_box()["height"] > 10
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
