"""The page in a browser: it opens without an error, and everything on it can be reached. Playwright drives the system's
Chromium; without either, these tests are skipped."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import trivium
from tests.page.programs import CALLS, located
from trivium.cli import main
from trivium.page import page_of, write_page

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    source = folder / "model.py"
    source.write_text("".join(f"line{number} = model(<b>{number}</b>)\n" for number in range(1, 30)))
    write_page(folder / "page.html", page_of(located(str(source)), "<b>model</b>", "cpu"))
    return folder / "page.html"


@pytest.fixture
def page(browser, file: Path) -> Iterator:
    yield from opened(browser, file)


def opened(browser, file: Path) -> Iterator:
    """The page, opened in the browser; errors in the console fail the test."""
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("file://") else errors.append(request.url))
    page.goto(file.as_uri())
    page.locator("main").wait_for()
    yield page
    page.close()
    assert errors == []


def chosen(page) -> dict[str, dict[str, str]]:
    """Returns the labels of everything that is highlighted, with their roles, by stage."""
    return page.evaluate(
        "Object.fromEntries(trivium.model.stages.map((stage, i) => [stage.name, Object.fromEntries("
        "[...trivium.selection.related[i]].map(([n, role]) => [stage.items[n].label, role]))]))"
    )


def line(page, stage: str, text: str):
    return page.locator(f'.listing[data-stage="{stage}"] .line', has_text=text).first


def test_it_opens_with_an_overview(page) -> None:
    expect(page.locator("h1")).to_have_text("<b>model</b>")
    assert page.locator(".box.open > .name").all_text_contents() == ["encoder.layer"]
    assert page.locator(".box.closed > .name").all_text_contents() == ["head", "act"]
    expect(page.locator("body b")).to_have_count(0)  # names of the program are shown as text


def test_a_line_is_followed_to_the_machine_code_and_back(page) -> None:
    line(page, "source", "line6 =").click()
    found = chosen(page)
    assert found["source"] == {"model.py:6": "chosen"}
    assert found["program"] == {"tanh": "result"}
    (kernel,) = found["kernels"]
    label = f"kernel.{kernel}:"
    assert all(name.startswith(f"kernel.{kernel}") for name in [*found["llvm"], *found["asm"]])
    assert page.locator('.listing[data-stage="kernels"] .line.result').count() > 3
    page.keyboard.press("7")
    page.evaluate(
        "name => { const asm = trivium.listings.get('asm'); asm.show(asm.stage.lines.indexOf(name)); }", label
    )
    line(page, "asm", label).click()
    back = chosen(page)
    assert back["asm"] == {f"kernel.{kernel}": "chosen"}
    assert back["source"]["model.py:6"] == back["program"]["tanh"] == "origin"


def test_selection_is_shown_without_colour(page) -> None:
    line(page, "source", "line6 =").click()
    expect(page.locator(".line.chosen .sign").first).to_have_text("▶")
    expect(page.locator(".line.result .sign").first).to_have_text("▸")
    assert page.locator(".said").text_content().startswith("model.py:6: 1 in Source, 1 in Program")


def test_groups_open_and_close(page) -> None:
    page.locator(".box.closed", has_text="head").locator(".toggle").click()
    page.locator(".box.item", has_text="exponential").click()
    expect(page.locator(".details h3")).to_have_text("exponential")
    page.locator(".box.open", has_text="head").locator("> .toggle").dispatch_event("click")
    expect(page.locator(".box.item", has_text="exponential")).to_have_count(0)
    expect(page.locator(".box.closed.chosen > .name")).to_have_text("head")  # stands for its contents


@pytest.mark.parametrize(
    ("query", "found"), [("tanh", "tanh"), ("framework.stablehlo.exp", "exponential"), ("8x16 exp head", "exponential")]
)
def test_search(page, query: str, found: str) -> None:
    page.keyboard.press("/")
    page.keyboard.type(query)
    page.keyboard.press("Enter")
    expect(page.locator(".details h3")).to_have_text(found)
    expect(page.locator(".box.chosen")).to_have_count(1)


def test_search_without_result(page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("nothing of the kind")
    expect(page.locator(".results")).to_have_text("0 found")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")


def test_everything_is_reached_by_keys(page) -> None:
    opened = page.locator(".box.open")
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    counts = [opened.count()]
    for _ in range(2):
        page.keyboard.press("Enter")
        counts.append(opened.count())
    assert counts[0] == counts[2] != counts[1]
    page.keyboard.press(" ")
    first = page.locator(".details h3").text_content()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    assert page.locator(".details h3").text_content() != first
    page.locator('.listing[data-stage="graph"] .scroller').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert len(chosen(page)["graph"]) == 1
    page.keyboard.press("Escape")
    assert chosen(page)["graph"] == {}
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()


def test_dark_and_light(page) -> None:
    def brightness() -> int:
        return page.evaluate("Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number))")

    light = brightness()
    page.keyboard.press("d")
    assert brightness() < 60 < 200 < light
    page.keyboard.press("d")
    assert brightness() == light


def test_constants_have_a_histogram(page) -> None:
    page.keyboard.press("2")
    line(page, "program", "stablehlo.constant dense<[").click(position={"x": 60, "y": 9})
    expect(page.locator(".histogram rect")).to_have_count(24)
    expect(page.locator(".details")).to_contain_text("not finite")


def test_a_click_while_lines_are_drawn_again(page) -> None:
    """A window that changes its size between the press and the release of a button draws all lines again."""
    place = line(page, "source", "line6 =").bounding_box()
    page.mouse.move(place["x"] + 5, place["y"] + 5)
    page.mouse.down()
    page.set_viewport_size({"width": 1400, "height": 700})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.mouse.up()
    assert chosen(page)["source"] == {"model.py:6": "chosen"}


def test_narrow_windows(page) -> None:
    """In a narrow window, the stages are shown one below the other."""
    page.set_viewport_size({"width": 500, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 500


@pytest.fixture
def timed(browser, file: Path, tmp_path: Path) -> Iterator:
    """The page of the same program with a profile."""
    run = trivium.compile(located(str(file.with_name("model.py"))), threads=1)
    profile = run.profile(np.ones((8, 16), np.float32), np.ones((16, 16), np.float32), runs=2)
    run.show(tmp_path / "page.html", profile=profile)
    yield from opened(browser, tmp_path / "page.html")


def slowest(page) -> str:
    return page.evaluate("trivium.model.launches.items[trivium.model.times.steps[0].number].label")


def test_times_are_shown_on_everything(timed) -> None:
    timed.keyboard.press("4")  # the launches, for which this window is too narrow at first
    for stage in ("source", "launches"):
        assert timed.locator(f'.listing[data-stage="{stage}"] .heat').count() >= 2
    assert timed.locator(".box .warm").count() >= 2
    expect(timed.locator(".box.closed .about").first).to_contain_text("us · ")
    assert timed.locator('.listing[data-stage="launches"] .heat').first.text_content().endswith(" us")


@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_the_table_of_times_is_whole(timed, width: int) -> None:
    timed.set_viewport_size({"width": width, "height": 900})
    timed.reload()
    timed.locator(".profile table").wait_for()
    parts = "[...document.querySelectorAll('.profile .view, .profile td button')]"
    assert timed.evaluate(f"{parts}.filter((e) => e.scrollWidth > e.clientWidth).length") == 0


def test_the_slowest_launch_is_one_key_away(timed) -> None:
    timed.keyboard.press("h")
    assert list(chosen(timed)["launches"].items()) == [(slowest(timed), "chosen")]
    expect(timed.locator(".details dl").first).to_contain_text("of a run")
    expect(timed.locator(".profile tr.chosen .sign")).to_have_text("▶")
    timed.keyboard.press("h")
    assert list(chosen(timed)["launches"]) != [slowest(timed)]
    timed.keyboard.press("H")
    assert list(chosen(timed)["launches"]) == [slowest(timed)]


def test_the_table_selects_and_is_sorted(timed) -> None:
    rows = timed.locator(".profile tbody tr button")
    assert rows.first.get_attribute("title") == slowest(timed)
    rows.first.click()
    assert list(chosen(timed)["launches"]) == [slowest(timed)]
    timed.locator(".profile th button", has_text="step").click()
    steps = timed.locator(".profile tbody tr")
    order = [int(steps.nth(i).get_attribute("data-step")) for i in range(steps.count())]
    assert order == sorted(order)
    timed.keyboard.press("8")
    expect(timed.locator(".profile")).to_be_hidden()


@pytest.mark.parametrize(
    ("view", "mark"), [("Roofline", "circle.point"), ("Memory", "rect.held"), ("Modules", ".frame-of.launch")]
)
def test_charts_select_and_show_the_selection(timed, view: str, mark: str) -> None:
    timed.locator(f'[data-view="{view}"]').click()
    drawn = timed.locator(f".profile {mark}")
    assert drawn.count() >= 1
    drawn.last.click()
    (selected,) = chosen(timed)["launches"]
    assert "chosen" in drawn.last.get_attribute("class")
    assert selected in drawn.last.locator("title").text_content()
    timed.keyboard.press("Escape")
    expect(timed.locator(".profile .chosen")).to_have_count(0)
    timed.keyboard.press("h")  # the launch that took longest, which need not hold memory
    assert len(chosen(timed)["launches"]) == 1
    assert timed.locator(f".profile {mark}.chosen").count() >= 1 or view == "Memory"


def test_modules_have_the_time_of_their_launches(timed) -> None:
    timed.locator('[data-view="Modules"]').click()
    assert timed.evaluate("trivium.panel.frames.seconds") == pytest.approx(
        timed.evaluate("trivium.model.times.steps.reduce((sum, step) => sum + step.seconds, 0)")
    )
    whole, layer = timed.locator(".frame-of.module").all()[:2]
    assert whole.locator("title").text_content().startswith("the program\n")
    layer.locator("rect").click()
    assert chosen(timed)["graph"]["tanh"] == "chosen"
    assert "chosen" in layer.get_attribute("class")
    layer.locator("rect").dblclick()
    assert timed.locator(".frame-of.module title").first.text_content().startswith("encoder.layer")
    timed.locator(".frame-of.module rect").first.dblclick()
    assert timed.locator(".frame-of.module title").first.text_content().startswith("the program")


def test_pages_without_a_profile_have_no_times(page) -> None:
    page.keyboard.press("h")
    expect(page.locator(".heat, .warm, .profile")).to_have_count(0)


@pytest.fixture
def stepped(browser, tmp_path: Path) -> Iterator:
    """The page of a program that the optimizer changes."""
    trivium.compile(trivium.parse(CALLS)).show(tmp_path / "page.html")
    yield from opened(browser, tmp_path / "page.html")


def test_passes_and_rewrites_are_stepped_through(stepped) -> None:
    pane = stepped.locator(".passes")
    expect(pane).to_be_hidden()
    stepped.keyboard.press("}")
    stepped.keyboard.press("]")
    expect(pane).to_be_visible()
    assert pane.locator("option").first.text_content().startswith("all passes: 10 → 5 ops")
    rules = []
    for _ in range(stepped.evaluate("trivium.model.passes.steps.length")):
        rules.append(pane.locator(".note").text_content())
        stepped.keyboard.press("]")
    assert "1 of 1 · inline" in rules
    assert any(" · constant_to_the_right · c + x == x + c" in rule for rule in rules)
    for key, expected in (("{", "0"), ("}", "2")):
        pane.locator("select").select_option("1")
        pane.locator(".scroller").focus()
        stepped.keyboard.press(key)
        assert pane.locator("select").input_value() == expected


def test_a_rewrite_is_selected_everywhere(stepped) -> None:
    stepped.locator('[data-pane="passes"]').click()
    pane = stepped.locator(".passes")
    while "constant_to_the_right" not in pane.locator(".note").text_content():
        stepped.keyboard.press("]")
    shown = pane.locator(".line.chosen").all_text_contents()
    assert [text.replace("▶", "").strip()[0] for text in shown] == ["-", "+"]
    assert chosen(stepped)["program"] == {"multiply": "chosen"}
    stepped.keyboard.press("Escape")
    expect(pane.locator(".line.chosen")).to_have_count(0)
    pane.locator(".line.owned", has_text="stablehlo.multiply").first.click()
    assert chosen(stepped)["program"]["multiply"] == "chosen"
    pane.locator("select").select_option("1")
    line(stepped, "graph", "stablehlo.multiply").click()
    assert pane.locator(".line.origin").count() > 0


def test_the_passes_between_a_program_and_what_it_becomes(browser, tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "%c = stablehlo.constant dense<2.0> : tensor<4xf32>\n"
        "%0 = stablehlo.multiply %c, %x : tensor<4xf32>\n"
        "return %0 : tensor<4xf32>\n}"
    )
    words = ["diff", str(tmp_path / "a.mlir"), "--random", "--html", str(tmp_path / "page.html")]
    assert CliRunner().invoke(main, words).exit_code == 0
    for page in opened(browser, tmp_path / "page.html"):
        page.keyboard.press("]")
        expect(page.locator(".pane.passes .note")).to_contain_text("constant_to_the_right")
        assert chosen(page)["program"]["multiply"] == "chosen"


def test_an_op_is_followed_to_its_instructions_and_back(page) -> None:
    """In a kernel of several ops, only the lines that compute an op belong to it, down to the machine code."""
    stages = {name: page.locator(f'.listing[data-stage="{name}"]') for name in ("kernels", "llvm", "asm")}
    page.keyboard.press("6")
    page.keyboard.press("7")
    line(page, "source", "line6 =").click()
    shown = {name: pane.locator(".line.result").all_text_contents() for name, pane in stages.items()}
    assert all("tanh" in text or "store" in text for text in shown["kernels"])
    assert 0 < len(shown["asm"]) < page.evaluate("trivium.model.stages.at(-1).lines.length") / 4
    stages["asm"].locator(".line.result").last.click()
    found = chosen(page)
    assert set(found["graph"]) <= {"tanh"}
    assert found["source"]["model.py:6"] == "origin"
    assert stages["kernels"].locator(".line.origin").count() < 4


def test_a_loop_is_selected_with_what_is_in_it(page) -> None:
    line(page, "kernels", "reduction").click()
    kernels = page.locator('.listing[data-stage="kernels"] .line.chosen')
    assert [text.split()[1] for text in kernels.all_text_contents()][-1] == "}"
    assert set(chosen(page)["graph"]) == {"dot_general"}


def test_a_line_that_became_a_part_of_others_leads_to_them(page) -> None:
    """The loops of a product are computed by its tiles and its epilogue, and loads become operands."""
    page.keyboard.press("7")
    whole = page.evaluate("trivium.model.stages.at(-1).lines.length")
    for text in ("= add", "= load x1", "store"):
        line(page, "kernels", text).click()
        assert 0 < page.evaluate("trivium.listings.get('asm').marked.length") < whole / 3
        assert page.locator('.listing[data-stage="kernels"] .line.chosen').count() == 1
