"""The first screen of a page, in headless Chromium: pictures, and the claims as a forest of rows."""

from analysis.verdicts.claims_table import MEANINGS


def test_the_first_screen_is_pictures_and_the_claims_come_before_any_table(visit):
    tab = visit(1400)
    tab.set_viewport_size({"width": 1400, "height": 900})
    curves, change = (
        tab.locator(f"#figure-{name} img").bounding_box() for name in ("accuracy", "before-after")
    )
    claims = tab.locator("#forest").bounding_box()
    assert curves["y"] < 600
    assert claims["y"] < 600
    assert claims["x"] > curves["x"] + curves["width"]  # beside each other
    assert change["y"] > curves["y"] + curves["height"]
    order = "[...document.querySelectorAll('h1, .lead, figure, #forest, #completions, table')]"
    names = tab.evaluate(f"{order}.map(e => e.id || e.className || e.tagName)")
    first = ["H1", "lead", "forest", "figure-accuracy", "figure-before-after", "completions"]
    assert names[: len(first)] == first
    assert names.count("figure-accuracy") == 1  # not in the section on training too
    tab.set_viewport_size({"width": 390, "height": 900})
    curves, claims = (tab.locator(name).bounding_box() for name in ("#figure-accuracy", "#forest"))
    assert curves["y"] > claims["y"] + claims["height"]  # on a phone the claims come first
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_each_arm_is_explained_below_the_curves_that_show_it(visit, run):
    tab = visit(1400)
    described, curves = (tab.locator(name).bounding_box() for name in ("#pictures dl", "#figure-accuracy"))
    assert 0 < described["y"] - curves["y"] - curves["height"] < 100
    arms = dict(
        zip(*(tab.locator(f"#pictures {part}").all_inner_texts() for part in ("dt", "dd")), strict=True)
    )
    assert len(arms) == 3
    assert all(run.document.arms[arm].about == about for arm, about in arms.items())


def test_on_a_phone_the_contents_unfold_and_fold_again_when_followed(visit):
    tab = visit(390)
    link = tab.locator("nav a[href='#provenance']")
    assert link.is_hidden()
    tab.locator("nav summary").click()
    assert link.is_visible()
    link.click()
    link.wait_for(state="hidden")
    assert tab.url.endswith("#provenance")
    tab.set_viewport_size({"width": 1200, "height": 900})
    assert link.is_visible()  # on a desk they always show


def test_a_claim_says_its_word_and_unfolds_what_decides_it(visit):
    tab = visit(1200)
    claim = tab.locator("#claim-rl-lifts-accuracy")
    badge = claim.locator(".badge")
    assert badge.inner_text() == "open"
    assert badge.get_attribute("title") == MEANINGS["open"]
    words = set(tab.locator("#verdicts .badge").all_inner_texts())
    text = tab.locator("#verdicts").inner_text()  # for print and for touch
    assert {word for word, meaning in MEANINGS.items() if f"{word}: {meaning}" in text} == words
    decides = claim.locator("dl")
    assert decides.is_hidden()
    claim.locator("summary").click()
    assert {"Asked", "Compared", "Detectable", "Seeds"} <= set(decides.locator("dt").all_inner_texts())
    claim.locator("summary").press("Enter")
    assert decides.is_hidden()
    tab.emulate_media(media="print")
    assert decides.is_visible()
    untested = tab.locator("#claim-random-reward-does-not-help")
    assert untested.locator("svg").count() == 0
    assert "not tested" in untested.inner_text()


def test_a_link_to_a_claim_opens_it(visit):
    tab = visit(1200)
    decides = tab.locator("#claim-rl-lifts-accuracy dl")
    assert decides.is_hidden()
    tab.evaluate("location.hash = '#claim-rl-lifts-accuracy'")
    decides.wait_for(state="visible", timeout=5000)
    tab.evaluate("location.hash = '#no-such-claim'")  # the visit fails on an error of a script
