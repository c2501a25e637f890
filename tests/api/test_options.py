"""Options: every field of a request can be said. (What is made of them: test_prompt.py.)"""

from interlingua.api.options import GenerateOptions, RequestOptions
from interlingua.spec.request import Request


def test_every_field_of_a_request_can_be_said():
    """But for those that a run sets itself."""
    ours = {"model", "request_id", "n"}

    assert {*Request.__struct_fields__} - ours == {*RequestOptions.__annotations__} - {"system"}
    assert {*RequestOptions.__annotations__} <= {*GenerateOptions.__annotations__}
