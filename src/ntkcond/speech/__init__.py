"""Speech: a corpus of FLAC files in LibriSpeech's layout, its frames, features and phone labels."""
