"""Speech: espeak-ng in a process of its own, ffmpeg for mp3."""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from services.studio.domain.jobs import SpeechJob
from services.studio.media.ffmpeg import RenderError, run

WORKER = Path(__file__).with_name("espeak_worker.py")
WORDS_PER_MINUTE = 165

# The provider's voices by espeak-ng voice and variant.
VOICES = {
    "alloy": "en-us",
    "ash": "en-us+m2",
    "ballad": "en+m4",
    "coral": "en-us+f2",
    "echo": "en-us+m1",
    "fable": "en",
    "nova": "en-us+f3",
    "onyx": "en-us+m7",
    "sage": "en+f1",
    "shimmer": "en-us+f4",
    "verse": "en+m3",
}


async def make(job: SpeechJob) -> bytes:
    """The spoken text as wav (mono, 16 bit) or mp3. Raises RenderError."""
    with tempfile.TemporaryDirectory(prefix="speech-") as folder:
        text, wav = Path(folder, "text"), Path(folder, "speech.wav")
        text.write_text(job.text, encoding="utf-8")
        library, data = _engine()
        pace = str(round(WORDS_PER_MINUTE * job.rate))
        worker = ["-I", "-S", str(WORKER), library, data, _voice(job), pace, str(text), str(wav)]
        await run(worker, tool=sys.executable)
        if job.encoding == "mp3":
            mp3 = Path(folder, "speech.mp3")
            await run(["-i", str(wav), "-b:a", "48k", str(mp3)])
            return mp3.read_bytes()
        return wav.read_bytes()


def _voice(job: SpeechJob) -> str:
    """The espeak-ng voice; a text that is mostly Chinese is read in Mandarin, with the same variant."""
    voice = VOICES[job.voice]
    ideographs = sum("\u4e00" <= letter <= "\u9fff" for letter in job.text)
    if ideographs * 2 > len(job.text):
        return "cmn" + voice[voice.index("+") :] if "+" in voice else "cmn"
    return voice


def _engine() -> tuple[str, str]:
    """Paths of the espeak-ng library and its data. Only located here: the library is GPL and stays outside."""
    spec = find_spec("espeakng_loader")
    if spec is None or not spec.submodule_search_locations:
        raise RenderError("the package espeakng-loader is not installed")
    root = Path(spec.submodule_search_locations[0])
    library = next(iter(sorted(root.glob("libespeak-ng.*")) + sorted(root.glob("espeak-ng.dll"))), None)
    if library is None:
        raise RenderError(f"no espeak-ng library under {root.name}")
    return str(library), str(root / "espeak-ng-data")
