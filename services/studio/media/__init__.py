"""The makers of real media: pictures with Pillow, clips with ffmpeg, speech with espeak-ng in a process of its own."""
