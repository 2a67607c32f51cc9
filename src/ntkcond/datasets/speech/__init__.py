"""From a corpus of FLAC files to frames of log-mel features."""
