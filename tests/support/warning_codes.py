"""The codes of warnings."""


def codes(answer):
    """Those of a response or result, without that of a price: models of tests have none."""
    return [each.code for each in answer.warnings if each.code != "price_unknown"]
