"""The page of `encore watch` in a browser: it follows a run, draws it, and takes no text for markup."""

import threading

import pytest
import watched_run

from analysis.watch.server import HOST, listen
from analysis.watch.watcher import Watcher

HOSTILE = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>'
SOON = 15_000  # milliseconds


@pytest.fixture
def trainings(tmp_path):
    return watched_run.make(tmp_path)


@pytest.fixture
def page(trainings, tmp_path, browser):
    """A page of the run, at a width and in a scheme; what its console says fails the test."""
    watcher = Watcher(tmp_path / "results", ())
    server = listen(watcher, 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    tabs, complaints = [], []

    def opened(width=1400, scheme="light"):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.set_default_timeout(SOON)
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(f"http://{HOST}:{server.server_port}/")
        tab.locator("#group .card").first.wait_for()
        tabs.append(tab)
        return tab

    opened.complaints = complaints
    yield opened
    for tab in tabs:
        tab.close()
    server.shutdown()
    server.server_close()
    thread.join()
    assert not complaints


def test_a_run_is_followed_as_it_goes_on(page, trainings):
    tab = page()
    assert tab.locator("h1").inner_text() == "1 running · 1 done · 1 failed · 4 waiting"
    card = tab.locator("#now .card")
    assert card.locator("progress").get_attribute("max") == "40"
    assert "step 12 of 40" in card.inner_text()
    assert "55.0% of groups have zero variance" in card.inner_text()
    assert "MemoryError: no room" in tab.locator("#ended-jobs").inner_text()
    trainings["a/seed1"].go_on(5)
    tab.get_by_text("step 17 of 40").wait_for()
    tab.get_by_text("Step 17, 4 completions").wait_for()
    trainings["a/seed1"].end()
    tab.get_by_text("0 running · 2 done").wait_for()
    assert tab.locator("#nothing").is_visible()


def test_each_job_has_a_mark_and_a_word(page):
    tab = page()
    row = tab.locator("#grid tbody tr").filter(has_text="base-recipe")
    marks = [mark.get_attribute("title") for mark in row.locator(".job").all()]
    assert marks == [
        "base-recipe, seed 0: grpo failed",
        "base-recipe, seed 0: evaluation after waiting",
        "base-recipe, seed 1: grpo waiting",
    ]
    assert "grpo failed" in row.locator("td").first.inner_text()


def test_an_arm_is_switched_off_and_stays_off(page, trainings):
    tab = page()
    lines = tab.locator("#charts svg").first.locator("polyline")
    assert lines.count() == 4  # three seeds, and the mean of the two of one arm
    assert lines.first.locator("title").text_content() == "a, seed 0: 0.3"
    tab.get_by_label("a", exact=True).uncheck()
    assert lines.count() == 1
    trainings["a/seed1"].go_on(1)
    tab.get_by_text("step 13 of 40").wait_for()
    assert lines.count() == 1
    assert tab.locator("#charts svg").first.get_attribute("aria-label").startswith("Reward, by step.")


def test_a_group_is_shown_with_rewards_and_tinted_by_advantages(page):
    tab = page()
    cards = tab.locator("#group .card")
    assert cards.count() == 4
    assert "reward 0" in cards.first.inner_text()
    assert "advantage -1.5" in cards.first.inner_text()
    assert "cut at the cap" in cards.first.inner_text()
    grounds = [
        card.evaluate("c => getComputedStyle(c.querySelector('pre')).backgroundColor") for card in cards.all()
    ]
    assert len(set(grounds)) == 4
    tab.get_by_label("Question").select_option("1")
    tab.get_by_text("question 2 of step 12").wait_for()


def test_what_a_run_writes_never_becomes_markup(page, trainings):
    tab = page()
    running = trainings["a/seed1"]
    running.progress.warn(HOSTILE)
    running.go_on(1, text=HOSTILE)
    with trainings["base-recipe/seed0"].log.open("a") as stream:
        stream.write(f"error: {HOSTILE}\n")
    for place in ("#now", "#ended-jobs", "#group"):
        tab.locator(place).get_by_text(HOSTILE).first.wait_for()
    assert tab.evaluate("window.attacked") is None
    assert tab.locator("main img").count() == 0
    tab.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'attacked = 1'}))"
    )
    assert tab.evaluate("window.attacked") is None
    assert "Content Security Policy" in page.complaints.pop()


def test_a_server_that_has_ended_is_told(page):
    tab = page()
    tab.route("**/*.json*", lambda route: route.abort())
    tab.get_by_text("No answer: has encore watch ended?").wait_for()
    tab.unroute("**/*.json*")
    tab.locator("#lost").wait_for(state="hidden")
    assert set(page.complaints) == {"Failed to load resource: net::ERR_FAILED"}
    page.complaints.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_axe_has_no_serious_finding_and_nothing_is_wider_than_the_page(page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = page(width, scheme)
    for details in tab.locator("details").all():
        details.evaluate("d => d.open = true")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.run(tab).response["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not bad, [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in bad]
