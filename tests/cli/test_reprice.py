"""`interlingua reprice` computes the costs of stored records again."""

import json

USAGE = {"input_tokens": 1_000_000, "output_tokens": 1_000_000}
RECORD = {"provider": "openai", "model": "house", "usage": USAGE, "cost": {"total": 1.0}}


def test_sums_by_model(bare, tmp_path):
    """Lines and arrays are read; the table has the costs before and now."""
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"house": {"input": 2, "output": 3}}))
    lines = "\n".join([json.dumps(RECORD)] * 2)
    done = bare.run("reprice", "--prices", str(prices), "--json", stdin=lines)
    again = bare.run("reprice", "--prices", str(prices), "--json", stdin=json.dumps([RECORD] * 2))

    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert (row["calls"], row["before"], row["now"], row["unpriced"]) == (2, 2.0, 10.0, 0)
    assert again.stdout == done.stdout


def test_the_records(bare, tmp_path):
    """`--records` prints each with its new cost."""
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"house": {"input": 2, "output": 3}}))
    done = bare.run("reprice", "--prices", str(prices), "--records", stdin=json.dumps(RECORD))

    assert json.loads(done.stdout)["cost"]["total"] == 5.0


def test_an_unknown_price_is_not_zero(bare):
    """It is counted as unpriced."""
    (row,) = json.loads(bare.run("reprice", "--json", stdin=json.dumps(RECORD)).stdout)

    assert (row["now"], row["unpriced"]) == (None, 1)


def test_bad_files_are_one_line(bare):
    """Never a traceback."""
    for content in ("{", "[5]", '[{"model": 5, "usage": "x"}]'):
        done = bare.run("reprice", stdin=content)
        assert done.returncode not in (0, 70), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
