"""Which result answers which call."""

from interlingua.dialects.gemini_generate.links import request_links, response_links


def test_results_answer_in_order():
    """Results without an id answer the calls of their name, first to first."""
    links = request_links()
    first, other, second = links.call("f", None), links.call("g", None), links.call("f", None)

    assert [links.answer("f", None), links.answer("f", None)] == [first, second]
    assert links.answer("g", None) == other


def test_nearest_turn_is_answered_first():
    """A later turn's calls are answered before those an earlier turn left open."""
    links = request_links()
    links.turn()
    early = links.call("f", None)
    links.turn()
    late = links.call("f", None)

    assert links.answer("f", None) == late
    assert links.answer("f", None) == early


def test_result_with_an_id_takes_its_call():
    """A call that was answered by id is not answered again by name."""
    links = request_links()
    links.call("f", "a")
    links.call("f", "b")

    assert links.answer("f", "a") == "a"
    assert links.answer("f", None) == "b"


def test_result_of_no_call_gets_an_id_of_its_own():
    """A result that answers nothing still has an id, unlike any other."""
    links = request_links()
    call = links.call("f", None)

    assert links.answer("g", None) not in ("", call)


def test_made_ids_are_stable_and_unlike_given_ones():
    """The same conversation gives the same ids; one in use is passed over."""
    one, two = request_links(), request_links()

    assert one.call("f", None) == two.call("f", None)
    taken = request_links()
    taken.call("f", one.call("f", "call_unnamed_1"))
    assert taken.call("f", None) != "call_unnamed_1"


def test_response_ids_come_from_the_caller():
    """An answer's unnamed calls are named from the caller's source."""
    links = response_links(lambda: "01ABC")

    assert links.call("f", None) == "call_01ABC"
    assert response_links(None).call("f", None) == "call_1"


def test_reused_ids_are_answered_each_time():
    """Field bug 9: an id used in two turns waits for an answer twice."""
    links = request_links()
    for _ in range(2):
        links.turn()
        links.call("f", "same")
        assert links.answer("f", None) == "same"
