"""A program: reads a text aloud into a wav file with libespeak-ng. Started by `voice.py`, never imported.

Usage: espeak_worker.py LIBRARY DATA VOICE WORDS_PER_MINUTE TEXT_FILE WAV_FILE
"""

from __future__ import annotations

import ctypes
import sys
import wave

RETRIEVAL = 1  # AUDIO_OUTPUT_RETRIEVAL: samples go to the callback before espeak_Synth returns when synchronous
SYNCHRONOUS = 2
UTF8 = 1
RATE = 1  # espeakRATE
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def main(library: str, data: str, voice: str, pace: str, text_file: str, wav_file: str) -> int:
    """Speaks the file; gives the exit code."""
    engine = ctypes.CDLL(library)
    sample_rate = engine.espeak_Initialize(SYNCHRONOUS, 0, data.encode(), 0)
    if sample_rate <= 0:
        sys.stderr.write("espeak-ng did not start\n")
        return 1
    samples = bytearray()

    def collect(buffer: object, count: int, _events: object) -> int:
        if buffer and count > 0:
            samples.extend(ctypes.string_at(buffer, count * 2))  # type: ignore[arg-type]  # a POINTER(c_short)
        return 0

    callback = CALLBACK(collect)
    engine.espeak_SetSynthCallback(callback)
    if engine.espeak_SetVoiceByName(voice.encode()) != 0:
        sys.stderr.write(f"espeak-ng has no voice {voice}\n")
        return 1
    engine.espeak_SetParameter(RATE, int(pace), 0)
    with open(text_file, "rb") as source:
        text = source.read()
    buffer = ctypes.create_string_buffer(text)
    engine.espeak_Synth(buffer, ctypes.c_size_t(len(text) + 1), 0, 0, 0, UTF8, None, None)
    engine.espeak_Synchronize()
    engine.espeak_Terminate()
    with wave.open(wav_file, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(sample_rate)
        target.writeframes(bytes(samples))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
