"""The page in headless Chromium: Debian's packages chromium and chromium-driver."""

import json

import pytest

from tests.nmt.serving.browser import AVAILABLE, chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not AVAILABLE, reason="needs Debian's packages chromium and chromium-driver"
    ),
]
TEXT = "return document.getElementById('translation').textContent"
ERROR = "return document.getElementById('error').textContent"
WORDS = "return [...document.querySelectorAll('#words li')].map(each => each.textContent)"
CUT = "const cut = document.getElementById('cut'); return cut.hidden ? '' : cut.textContent"
TAB = "\ue004"


@pytest.fixture(scope="module")
def service(serve_toy, tmp_path_factory):
    return serve_toy(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def test_the_page(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.until("return document.getElementById('card').textContent.includes('Model toy')")
    browser.type("#text", "ein kleines Haus")
    browser.until(f"{TEXT} === 'EIN KLEINES HAUS!'")
    buttons = (
        "return [...document.querySelectorAll('#alternatives button')].map(each => each.innerText)"
    )
    assert [text.split("\n") for text in browser.run(buttons)] == [
        ["EIN KLEINES HAUS!", "cost 0.25"],
        ["ein kleines haus?", "cost 1.50"],
    ]
    browser.until("return document.querySelectorAll('#picture rect').length === 9")
    assert browser.run(WORDS)[0] == "EIN looks at ein, 100%"

    # Several lines, and markup that stays text.
    browser.type("#text", "\n<b>zwei</b>")
    browser.until(f"{TEXT} === 'EIN KLEINES HAUS!\\n<B>ZWEI</B>!'")
    assert browser.run("return document.querySelectorAll('#translation b').length") == 0
    assert (
        browser.run("return document.getElementById('beam-title').textContent")
        == "Alternatives for line 2"
    )
    assert (
        browser.messages() == []
    )  # nothing against the content security policy, no error of the script


def test_the_keyboard_reaches_everything_and_all_has_a_name(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.type("#text", "a b")
    browser.until("return document.querySelectorAll('#picture rect').length")
    reached = []
    browser.run("document.getElementById('text').focus()")
    for _ in range(4):
        browser.press(TAB)
        reached.append(
            browser.run("return document.activeElement.id || document.activeElement.textContent")
        )
    assert reached == ["translation", "A B!cost 0.25", "a b?cost 1.50", "picture"]
    browser.run("document.querySelectorAll('#alternatives button')[1].focus()")
    browser.press("\ue007")  # Enter
    browser.until(
        "return document.querySelectorAll('#alternatives button')[1].ariaPressed === 'true'"
    )
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    named = {
        node["role"]["value"]: node["name"]["value"]
        for node in nodes
        if node.get("name", {}).get("value")
    }
    assert named["textbox"].startswith("Text, one sentence a line")
    assert named["status"].startswith("Translation")
    for node in nodes:
        if node.get("role", {}).get("value") in (
            "textbox",
            "button",
            "status",
            "combobox",
            "image",
        ):
            assert node["name"]["value"], node


def test_the_picture_of_a_long_sentence_is_cut(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.type("#text", " ".join(f"w{i}" for i in range(75)))
    browser.until("return document.querySelectorAll('#picture rect').length === 60 * 60")
    assert browser.run(CUT).count("the first 60 of") == 2
    assert len(browser.run(WORDS)) == 60
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    enter(browser, "a b")
    browser.until("return document.querySelectorAll('#picture rect').length === 4")
    assert browser.run(CUT) == ""


def test_a_result_keeps_its_own_lines_while_the_text_changes(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.type("#text", "eins\nzwei drei")
    browser.until(f"{TEXT} === 'EINS!\\nZWEI DREI!'")
    browser.until("return document.querySelectorAll('#picture rect').length === 4")
    # New text that is not translated yet, with the caret in another line.
    browser.run(
        "const t = document.getElementById('text'); t.value = 'neu\\n'.repeat(5); "
        "t.setSelectionRange(0, 0)"
    )
    browser.run("document.querySelectorAll('#alternatives button')[1].click()")
    browser.until(f"{WORDS}[0] === 'zwei looks at zwei, 100%'")
    assert (
        browser.run("return document.getElementById('beam-title').textContent")
        == "Alternatives for line 2"
    )
    assert browser.run(f"{TEXT}") == "EINS!\nZWEI DREI!"


def test_errors_are_said_and_go_away(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.until("return document.getElementById('card').textContent.includes('Model toy')")
    browser.run(
        "const t = document.getElementById('text'); t.value = '\\n'.repeat(600) + 'a';"
        "t.dispatchEvent(new Event('input'))"
    )
    assert "a request may have 512 rows" in browser.until(ERROR)
    enter(browser, "b")
    browser.until(f"{TEXT} === 'B!'")
    assert browser.run(ERROR) == ""


SHOWN = """
return ["translation", "alternatives", "picture"].filter(id => {
  const each = document.getElementById(id);
  return each.offsetParent && each.textContent;
})"""


def enter(browser, text):
    browser.run(
        f"const t = document.getElementById('text'); t.value = {json.dumps(text)}; "
        "t.dispatchEvent(new Event('input'))"
    )


def test_after_an_error_nothing_of_another_text_is_shown(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.type("#text", "a b")
    browser.until("return document.querySelectorAll('#picture rect').length === 4")
    assert browser.run(SHOWN) == ["translation", "alternatives", "picture"]
    enter(browser, "\n" * 600 + "c")
    browser.until(ERROR)
    assert browser.run(SHOWN) == []


def test_a_cut_text_or_translation_is_said(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    notice = "return document.getElementById('notice').textContent"
    browser.type("#text", "short")
    browser.until(f"{TEXT} === 'SHORT!'")
    assert browser.run(notice) == ""
    enter(browser, f"short\n{'long ' * 250}\nendless")
    source, translation = browser.until(notice).split(". ")
    assert source.startswith("Line 2 is too long")
    assert "of line 3 is cut" in translation
    enter(browser, "nothing\nshort")
    browser.until(f"{TEXT} === '\\nSHORT!'")
    assert browser.run(notice) == "Line 1 has no translation."
    enter(browser, "short")
    browser.until(f"{TEXT} === 'SHORT!'")
    assert browser.run(notice) == ""


def test_a_service_that_went_away_is_said(serve_toy, browser, tmp_path):
    leaving = serve_toy(tmp_path)
    browser.open(f"http://127.0.0.1:{leaving.port}/")
    browser.type("#text", "a b")
    browser.until(f"{TEXT} === 'A B!'")
    leaving.process.terminate()
    leaving.process.join(60)
    enter(browser, "c")
    assert "does not answer" in browser.until(ERROR)
    assert browser.run(SHOWN) == []


def test_a_key_is_asked_for(serve_toy, browser, tmp_path):
    (tmp_path / "key").write_text("0123456789abcdef")
    keyed = serve_toy(tmp_path, "--api_key_file", tmp_path / "key")
    browser.open(f"http://127.0.0.1:{keyed.port}/")
    assert browser.until(ERROR) == "This service needs a key."
    browser.type("#key", "wrong\ue007")
    browser.until(f"{ERROR} === 'The service does not know this key.'")
    browser.run("document.getElementById('key').value = ''")
    browser.type("#key", "0123456789abcdef\ue007")
    browser.until(f"{ERROR} === ''")
    browser.type("#text", "a b")
    browser.until(f"{TEXT} === 'A B!'")


def test_text_from_right_to_left(service, browser):
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.type("#text", "שלום עולם, this is LTR")
    browser.until("return document.querySelectorAll('#picture rect').length")
    direction = "return getComputedStyle(document.getElementById('{}')).direction"
    for part in ("text", "translation", "alternatives"):
        assert browser.run(direction.format(part)) == "rtl", part
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")


def test_dark_and_phone(service, browser):
    browser.command(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    browser.command(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=780,
        deviceScaleFactor=2,
        mobile=True,
    )
    browser.open(f"http://127.0.0.1:{service.port}/")
    browser.type("#text", "ein langer Satz mit vielen Wörtern, der auf einem Telefon umbricht")
    browser.until("return document.querySelectorAll('#picture rect').length")
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    back, front = browser.run(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    )
    assert sum(map(int, back[4:-1].split(","))) < 150 < 600 < sum(map(int, front[4:-1].split(",")))
