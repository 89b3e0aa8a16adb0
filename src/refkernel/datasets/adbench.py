"""ADBench's classical tables: 22 real tables with labelled outliers, to compare detectors on.

GitHub ``Minqi824/ADBench`` (BSD-2-Clause), at a pinned commit. Most of them come from UCI and ODDS.
"""

from __future__ import annotations

from pathlib import Path

from .published import PublishedFiles

__all__ = ["FILES", "downloaded_paths"]

COMMIT = "3dac8221081e190f157d78e93bfa8867f90d0965"
SHA256 = {
    "6_cardio.npz": "bc5009bde6930b4d298b594f31b34485a9a17210cff0e8fb00a8c3068b885a2d",
    "11_donors.npz": "5824ec854465f2763b4bfe3da1ae9f25ed5433b5c6e265d42e37da4f82a58679",
    "14_glass.npz": "aa7a8db1d475ba01a10488af454bc15220a3d5951b010b03b7020567d8152cdc",
    "15_Hepatitis.npz": "4a87a2f7d8013e5bfde63294fae61ec7a612322de72f338a7f9491749025ad98",
    "16_http.npz": "9d98710091551587f4740cfc851a6b064fff6319a337c2dc77ee6da4bcc2e02c",
    "17_InternetAds.npz": "bdd8ad5cf5bf2cb96cba53dde30d522d0f6a279083a8e2bc7efbac5981b04385",
    "19_landsat.npz": "ba17e2158c07469597b89db49d3982c874c6b713ff6670721ddc88969da77987",
    "23_mammography.npz": "a0308ac9712d78321073b1c2dc98dc37665c0f35c1cc33019416fe8f8d7de7ea",
    "24_mnist.npz": "be7706272325fdd3592c1be555ae1a82f916a2f8545f4f8cbaa548ab102cc44c",
    "25_musk.npz": "2ed3f4392197b76a1e59116ff880c7720a4b026cf4842073a53b56fdea265017",
    "26_optdigits.npz": "60de17a375a278ba220a7849727d998aa02b5e2f9fd17732a004bba28de4656e",
    "28_pendigits.npz": "c4936b89dcdad59d303020e492f763a0f54170080d787c77497609acbb9c2d79",
    "29_Pima.npz": "215454bb263a2f040945c9ea7bd7f06f1e89a61a3143bdb6f196e3887e801a7d",
    "32_shuttle.npz": "26900b0f6be45d9ddb7a402c9b2f956ceda42d23a8ca4cf4406b8bc1352823d1",
    "33_skin.npz": "d02aa01ffc1b6bf2b8b1ac250c90e8a8eacd0cefc962940ed5cc4bf5deac9c95",
    "34_smtp.npz": "d2569fc9bc12115419e3f5b37d19921e10e6c26e5ad1e61064cfb0fbc402dfdd",
    "35_SpamBase.npz": "d0c46c7928e43f6496bcd06e09de0b70f6bc8143792dfa0a43f450263d254e9b",
    "37_Stamps.npz": "99fe739447284f613fa54bf2dccdb51c5120175ce6260adec6dad77576c42509",
    "38_thyroid.npz": "8de161b3f235b7647bb0b39a836d983ff61d67bf234edac461da2d71e889cb87",
    "40_vowels.npz": "4bfc4244d1c882773bbbc50d4a5db5e52276e53506e46b2d45e02d074cfcb1b6",
    "43_WDBC.npz": "78d4606a1ab516f5b60b00c196497f3bbd6bd5e4548fd04cf5f2475209b34b85",
    "46_WPBC.npz": "68a6d67242643855713bcdad07d89ecc472bd00000dccc17ba87916eb2693d19",
}
FILES = PublishedFiles(
    what="ADBench's tables",
    base_url=f"https://raw.githubusercontent.com/Minqi824/ADBench/{COMMIT}/adbench/datasets/Classical/",
    page=f"https://github.com/Minqi824/ADBench/tree/{COMMIT}/adbench/datasets/Classical",
    digests=SHA256,
    folder="adbench",
    suffix=".npz",
    cache="adbench",
)


def downloaded_paths() -> list[Path]:
    """The files in the cache; missing ones are downloaded (9 MB in total)."""
    return [FILES.cached_path(name) for name in SHA256]
