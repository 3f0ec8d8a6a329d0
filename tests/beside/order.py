"""The order in which tutti trains on samples: runtime/random.h and data/dataset.h in Python."""
MASK = (1 << 64) - 1
GOLDEN, OUTPUT = 0x9e3779b97f4a7c15, 0x2545f4914f6cdd1d


def mix_bits(z):
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def key_of(seed, purpose, *words):
    state, text = 0, purpose.encode()
    chunks = [int.from_bytes(text[i:i + 8], "little") for i in range(0, len(text), 8)]
    for word in [seed, len(text), *chunks, *words]:
        state = mix_bits(((state ^ word) + GOLDEN) & MASK)
    return state


def bits(state, counter):
    return mix_bits((mix_bits(state ^ OUTPUT) + GOLDEN * (counter + 1)) & MASK)


class Permutation:
    """Of range(size): a Feistel network of six rounds, repeated until the number is below `size`."""

    def __init__(self, size, state):
        self.size = size
        self.half = max(4, ((size - 1).bit_length() + 1) // 2)
        self.keys = [bits(state, i) for i in range(6)]

    def __call__(self, place):
        mask = (1 << self.half) - 1
        while True:
            left, right = place >> self.half, place & mask
            for key in self.keys:
                left, right = right, left ^ (mix_bits((right + key) & MASK) & mask)
            place = left << self.half | right
            if place < self.size:
                return place


def batches(section, samples, seed, epoch, global_batch):
    """The samples of each global batch of an epoch, as lists. `section`: [data.train] or [data.eval]."""
    starts = range(0, samples, global_batch)
    if section["drop_last"]:
        starts = range(0, samples - global_batch + 1, global_batch)
    if section["subset_num_batches"] >= 0:
        starts = starts[:section["subset_num_batches"]]
    place = Permutation(samples, key_of(seed, "order", epoch)) if section["shuffle"] else int
    return [[place(i) for i in range(start, min(start + global_batch, samples))] for start in starts]
