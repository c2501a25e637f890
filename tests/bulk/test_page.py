"""The report of a job, as text and as a page."""

import re
from html.parser import HTMLParser

from interlingua.bulk.page import report_page, report_text
from interlingua.simulator import error, text
from support.bulk_jobs import books

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;"


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.attributes = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def hostile(request):
    asked = request.messages[-1].text
    return error(400, HOSTILE) if "Book 3" in asked else text(HOSTILE)


def test_hostile_text_is_text(make_bench):
    """Names of columns, keys, values, answers and errors make no elements of the page."""
    bench = make_bench(hostile)
    rows = [{**row, HOSTILE: HOSTILE, "id": f"{HOSTILE}{row['id']}"} for row in books(6)]
    output = bench.folder / "<b>out.jsonl"
    page = report_page(bench.run(rows, output=output, id_column="id"))

    found = Page(page)
    usual = "html meta title style h1 dl div dt dd h2 table tr th td p"
    assert set(found.tags) <= set(usual.split())
    assert set(found.attributes) <= {"lang", "charset", "name", "content", "class", "style"}
    shown = "".join(found.texts)
    assert f"{HOSTILE}b1" in shown
    assert f"{HOSTILE}: {HOSTILE}" in shown
    assert f"invalid_request: openai:gpt-5.2: HTTP 400: {HOSTILE}" in shown
    assert "http://" not in page
    assert "https://" not in page


def test_what_the_page_shows(make_bench):
    """Counts, costs by model, finish reasons, distributions, samples, and failures by class."""
    bench = make_bench(
        lambda r: error(400, "no") if "Book 3" in r.messages[-1].text else text("x" * 1000)
    )
    report = bench.run([*books(6), {"title": None}], attempts=1)
    shown = "\n".join(each.strip() for each in Page(report_page(report)).texts if each.strip())

    for words in (
        "rows\n7\ndone\n5\nfailed\n2\npending\n0",
        "openai:gpt-5.2\n5\n",
        "Finish reasons\nstop\n5",
        "Failures by class\ninvalid_request\n2",
        "Characters of answers\nleast 1,000, mean 1,000, most 1,000\n512 to 1,024\n5",
        "Cost of answers\nleast $0.0",
        "Time of calls\nleast ",
        "Samples\nrow\ncolumns\nanswer\nrow:1\nid: b0\ntitle: Book 0\nxxx",
        "invalid_request: The column 'title' is empty.",
    ):
        assert words in shown
    assert "x" * 700 not in shown  # long answers are cut


def test_the_text(make_bench):
    """A few lines with the same figures."""
    bench = make_bench(lambda r: error(400, "no") if "Book 3" in r.messages[-1].text else text("x"))
    lines = report_text(bench.run([*books(6), *books(2)])).splitlines()

    assert re.fullmatch(r"7 of 8 rows done, 1 failed, 0 pending; \$0\.\d+ spent\.", lines[0])
    assert lines[1:3] == ["2 rows share the answer of an equal row.", "Failed, invalid_request: 1"]
    assert re.fullmatch(r"openai:gpt-5.2: 5 answers, \d+ tokens in, 5 out, \$0\.\d+", lines[3])


def test_a_job_that_was_stopped(bench):
    """The page and the text have the reason."""
    report = bench.run(books(50), max_usd=0.001, max_tokens=20, concurrency=1)

    assert "Stopped: " in report_text(report)
    assert any(each.startswith("Stopped: ") for each in Page(report_page(report)).texts)
