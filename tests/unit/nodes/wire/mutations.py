"""Frames as a broken peer or a bad disk would leave them."""

from hypothesis import strategies as st


def mutate(data: st.DataObject, raw: bytes) -> bytes:
    """Flip, cut, insert or repeat a few bytes."""
    mutated = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(mutated)))
        match data.draw(st.integers(0, 3)):
            case 0 if position < len(mutated):
                mutated[position] ^= data.draw(st.integers(1, 255))
            case 1:
                del mutated[position : position + data.draw(st.integers(1, 8))]
            case 2:
                mutated[position:position] = data.draw(st.binary(min_size=1, max_size=8))
            case _:
                mutated[position : position + 5] = b"\xff\xff\xff\xff\x0f"
    return bytes(mutated)
