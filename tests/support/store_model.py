"""
What a store of limits does, in the shortest form: every amount is remembered, and nothing is fast.

Times are microseconds.
"""

from math import inf

DAY = 86_400_000_000


def micro(seconds):
    return round(seconds * 1e6)


class Taken:
    """An amount of one limit, with its life."""

    def __init__(self, limit, now, ends):
        self.limit = limit
        self.amount = limit.amount
        self.counts_from = now
        self.ends = ends
        self.is_open = True

    def counts(self, at):
        """Whether it counts at a time."""
        if self.is_open and self.limit.mode != "spend":
            return at < self.ends
        if self.limit.mode == "hold":
            return False
        if self.limit.period is None:
            return True
        width = micro(self.limit.period) // 60  # the tests' periods are multiples of 60 µs
        return at < (self.counts_from // width + 61) * width


class Model:
    """All amounts that were ever taken."""

    def __init__(self):
        self.now = 0
        self.taken = []  # (reservation id, Taken)
        self.ends = {}  # of each reservation that has not been settled
        self.paced = {}  # until when, by key and period
        self.forget = {}  # when a total without a period is forgotten, by key

    def used(self, key, period, at=None):
        at = self.now if at is None else at
        return sum(
            taken.amount
            for _, taken in self.taken
            if (taken.limit.key, taken.limit.period) == (key, period) and taken.counts(at)
            if not (self._is_total(taken) and self.forget.get(key, inf) <= at)
        )

    @staticmethod
    def _is_total(taken):
        return taken.limit.period is None and (not taken.is_open or taken.limit.mode == "spend")

    def fits(self, limits, at):
        """Whether all amounts fit at a time, if nothing else happens before."""
        return all(
            self.used(limit.key, limit.period, at) + limit.amount <= limit.maximum
            and self._pace(limit, at)
            for limit in limits
        )

    def _pace(self, limit, at):
        if limit.burst is None or limit.period is None:
            return True
        credit = max(0, limit.burst - limit.amount) * micro(limit.period) / limit.maximum
        return self.paced.get((limit.key, limit.period), 0) - credit <= at

    def last_change(self):
        """A time after which nothing changes by itself."""
        times = [self.now, *self.paced.values(), *self.forget.values()]
        times += [taken.ends for _, taken in self.taken]
        times += [taken.counts_from + 2 * micro(taken.limit.period or 0) for _, taken in self.taken]
        return max(times) + 1

    def reserve(self, id_, limits, lease):
        ends = self.now + micro(lease)
        self.ends[id_] = ends
        for limit in limits:
            self.taken.append((id_, Taken(limit, self.now, ends)))
            if limit.mode == "spend":
                self._change_total(limit)
            self._add_pace(limit, limit.amount, since=self.now)

    def settle(self, id_, amounts):
        ends = self.ends.pop(id_, None)
        if ends is None or ends + DAY <= self.now:
            return False
        for taken in [taken for of, taken in self.taken if of == id_]:
            limit = taken.limit
            real = amounts.get(limit.key, limit.amount)
            is_counted = taken.counts(self.now)
            taken.is_open = False
            taken.amount = real
            if limit.mode == "reserve":
                taken.counts_from = self.now
                self._change_total(limit)
            if limit.mode != "hold" and (is_counted or real < limit.amount):
                self._add_pace(limit, real - limit.amount, since=0)
        return True

    def renew(self, id_, lease):
        if self.ends.get(id_, 0) <= self.now:
            return False
        self.ends[id_] = max(self.ends[id_], self.now + micro(lease))
        for of, taken in self.taken:
            if of == id_:
                taken.ends = self.ends[id_]
        return True

    def _add_pace(self, limit, amount, since):
        if limit.burst is not None and limit.period is not None:
            place = (limit.key, limit.period)
            interval = micro(limit.period) / limit.maximum
            self.paced[place] = max(self.paced.get(place, 0), since) + amount * interval

    def _change_total(self, limit):
        if limit.period is not None:
            return
        if self.forget.get(limit.key, inf) <= self.now:
            self.taken = [
                (id_, taken)
                for id_, taken in self.taken
                if taken.limit.key != limit.key
                or not self._is_total(taken)
                or taken.counts_from == self.now
            ]
            del self.forget[limit.key]
        if limit.ttl is not None:
            self.forget[limit.key] = self.now + micro(limit.ttl)
