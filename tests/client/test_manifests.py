"""What nodes say of themselves, as it is shown to others."""

from __future__ import annotations

from hearth.client.nodes.manifests import MOST_SHOWN, in_words
from hearth.client.reports import NodeSays, SaidFigures, SaidGpu


def says(*gpus: SaidGpu) -> NodeSays:
    return {"software": "hearth", "country": "de", "gpus": list(gpus)}


def test_in_words__gpus_alike__are_counted_and_what_is_not_said_is_not_made_up() -> None:
    l4: SaidGpu = {"name": "NVIDIA L4", "driver": "570.133", "vram_gib": 22, "measured": None}
    bare: SaidGpu = {"name": "", "driver": "", "vram_gib": 8, "measured": None}
    assert in_words(says(l4, bare, l4)) == '2 x "NVIDIA L4" 22 GiB, driver "570.133"; 1 x a GPU 8 GiB'
    assert in_words(says()) == in_words(None) == "-"


def test_in_words__gpus_that_were_measured__the_least_of_those_alike() -> None:
    def l4(half: int, memory: int) -> SaidGpu:
        figures: SaidFigures = {
            "at": 1,
            "memory_mib": 1,
            "from_host_mb_s": 1,
            "memory_mb_s": memory,
            "half_gflops": half,
        }
        return {"name": "NVIDIA L4", "driver": "", "vram_gib": 22, "measured": figures}

    bare: SaidGpu = {"name": "NVIDIA L4", "driver": "", "vram_gib": 22, "measured": None}
    words = '2 x "NVIDIA L4" 22 GiB'
    assert in_words(says(l4(121_500, 300_000), l4(1_210_000, 290_123))) == f"{words}, 122 TFLOP/s, 290 GB/s"
    assert in_words(says(l4(99_940, 3_100_000), l4(999_600, 999_600))) == f"{words}, 99.9 TFLOP/s, 1000 GB/s"
    assert in_words(says(l4(121_000, 300_000), bare)) == words


def test_in_words__strangers_names__take_a_line_of_bounded_length_and_stand_in_quotes() -> None:
    name, driver = 'X" 1 GiB, driver "1"; 9 x "NVIDIA H200', "570, 989 TFLOP/s"
    posing: SaidGpu = {"name": name, "driver": driver, "vram_gib": 1, "measured": None}
    quoted = '"X  1 GiB, driver  1 ; 9 x  NVIDIA H200"'
    assert in_words(says(posing)) == f'1 x {quoted} 1 GiB, driver "570, 989 TFLOP/s"'
    many = says(*({"name": f"{n:064}", "driver": "", "vram_gib": 1, "measured": None} for n in range(64)))
    assert len(in_words(many)) == MOST_SHOWN
